package sparsetable

import "context"

// CarriesWaiting is how many released sets' carried buckets the background
// writer has yet to write.
func CarriesWaiting(tab Table) int {
	t := tab.(*ssd)
	return t.carried.Waiting()
}

// WriteCarries does what the background writer does with carried buckets each time before
// it looks for other work.
func WriteCarries(ctx context.Context, tab Table) error {
	_, err := tab.(*ssd).writeCarries(ctx)
	return err
}

// HoldRewrite keeps everybody from writing buckets until the returned function
// is called.
func HoldRewrite(tab Table) (giveBack func()) {
	t := tab.(*ssd)
	t.rewrite.Lock()
	return t.rewrite.Unlock
}
