package bucketfile

// Entries returns the encoded rows, in place. With Len they are all that
// RebuildBucket needs to see them again in a copy.
func (b *Bucket) Entries() []byte { return b.entries }

// RebuildBucket is the view of a bucket of this Set whose Entries were copied.
func (s *Set) RebuildBucket(slot uint32, rows int, entries []byte) Bucket {
	return Bucket{Slot: slot, rows: rows, rowWords: s.opts.RowWords, entries: entries}
}
