package ssd

import (
	"context"

	"aibox/sparsetable/internal/contract"
)

// CarriesWaiting is how many released sets' carried buckets the background
// writer has yet to write.
func CarriesWaiting(tab contract.Scanner) int {
	t := tab.(*Table)
	return t.carried.Waiting()
}

// WriteCarries does what the background writer does with carried buckets each time before
// it looks for other work.
func WriteCarries(ctx context.Context, tab contract.Scanner) error {
	_, err := tab.(*Table).writeCarries(ctx)
	return err
}

// HoldRewrite keeps everybody from writing buckets until the returned function
// is called.
func HoldRewrite(tab contract.Scanner) (giveBack func()) {
	t := tab.(*Table)
	t.rewrite.Lock()
	return t.rewrite.Unlock
}
