package sparsetable

// CarriesWaiting is how many released sets' carried buckets the background
// writer has yet to write.
func CarriesWaiting(tab Table) int {
	t := tab.(*ssd)
	t.carried.Lock()
	defer t.carried.Unlock()
	return len(t.carried.waiting)
}

// HoldRewrite keeps everybody from writing buckets until the returned function
// is called.
func HoldRewrite(tab Table) (giveBack func()) {
	t := tab.(*ssd)
	t.rewrite.Lock()
	return t.rewrite.Unlock
}
