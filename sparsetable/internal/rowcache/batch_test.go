package rowcache

import "testing"

// VisitLeaving accepts references of rows that are not pinned, so the rows and their slabs may be
// gone. It visits the least used rows.
func TestVisitLeaving(t *testing.T) {
	c := newCache(t, Options{Policy: "history", Words: 8, MaxBytes: 400 << 10})
	var keys []uint64
	used := make([]uint32, 2000)
	for k := range uint64(2000) {
		keys = append(keys, k+1)
		used[k] = uint32(k%2) * 100
	}
	refs := make([]uint32, len(keys))
	if _, err := c.Insert(keys, hashesOf(keys), used, refs, false); err != nil {
		t.Fatal(err)
	}
	visited := func() (n int) {
		c.VisitLeaving(refs, func(e Entry) {
			n++
			if e.Pins != 0 {
				t.Errorf("key %d is pinned", e.Key)
			}
			if e.Key%2 == 0 && n > 1 {
				t.Errorf("key %d was used often", e.Key)
			}
		})
		return n
	}
	if n := visited(); n != 0 {
		t.Errorf("%d rows are visited, all are pinned", n)
	}
	c.Release(refs, false)
	if n := visited(); n != len(keys)/2 {
		t.Errorf("%d rows are visited, want %d", n, len(keys)/2)
	}
	if n := c.Drop(c.Victims(len(keys)-1, nil)); n != len(keys)-1 {
		t.Fatalf("%d rows leave", n)
	}
	if n := visited(); n != 1 {
		t.Errorf("%d rows are visited, one is left", n)
	}
	c.Drop(c.Victims(1, nil))
	if err := c.SetMaxBytes(c.minBytes()); err != nil {
		t.Fatal(err)
	}
	if kept, err := c.Shrink(); err != nil || !kept {
		t.Fatal(kept, err)
	}
	if n := visited(); n != 0 {
		t.Errorf("%d rows are visited, none is there", n)
	}
}
