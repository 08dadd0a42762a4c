package bucketfile

// Entries returns the encoded rows without copying them. RebuildBucket restores a Bucket from a
// copy of them and Len.
func (b *Bucket) Entries() []byte { return b.entries }

// RebuildBucket returns a view of a bucket of this Set from a copy of its Entries.
func (s *Set) RebuildBucket(slot uint32, rows int, entries []byte) Bucket {
	return Bucket{Slot: slot, rows: rows, rowWords: s.opts.RowWords, entries: entries}
}
