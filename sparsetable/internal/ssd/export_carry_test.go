package ssd

import (
	"context"

	"aibox/sparsetable/internal/contract"
)

// CarriesWaiting returns the number of released sets whose carried buckets the background writer
// has yet to write.
func CarriesWaiting(tab contract.Scanner) int {
	t := tab.(*Table)
	return t.carried.Waiting()
}

// WriteCarries writes carried buckets as the background writer does each time before it looks for
// other work.
func WriteCarries(ctx context.Context, tab contract.Scanner) error {
	_, err := tab.(*Table).writeCarries(ctx)
	return err
}

// HoldRewrite keeps all other goroutines from writing buckets until the returned function is
// called.
func HoldRewrite(tab contract.Scanner) (giveBack func()) {
	t := tab.(*Table)
	t.rewrite.Lock()
	return t.rewrite.Unlock
}
