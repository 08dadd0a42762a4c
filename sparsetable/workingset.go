package sparsetable

// WorkingSet is the pinned rows of one Pull. Position i belongs to keys[i].
//
// A position holds a reference into slabs that lie outside the garbage
// collector's heap: slab number in the high bits, row within it in the low
// ones. Row is a shift, a mask and two slices, and inlines.
type WorkingSet struct {
	refs    []uint32
	slabs   [][]float32
	words   int
	shift   uint
	mask    uint32
	release func(*WorkingSet)
	place   int    // among the table's live sets
	carry   *carry // for KindSSD: copies of the buckets that were read for the set
	mode    PullMode
	begin   func(*WorkingSet) // nil: Begin has nothing to do
	// unchanged says that the set is from PullAhead and Begin was not called. For KindSSD, under
	// the table's mutex.
	unchanged bool
}

// Len is the number of rows.
func (ws *WorkingSet) Len() int { return len(ws.refs) }

// Row returns row i, Layout.Words() long, to be read and updated in place.
func (ws *WorkingSet) Row(i int) []float32 {
	r := ws.refs[i]
	off := int(r&ws.mask) * ws.words
	return ws.slabs[r>>ws.shift][off : off+ws.words : off+ws.words]
}

// Found reports whether position i has a row of its own; false only for
// PullLookup, where it then refers to the shared zero row (reference 0).
func (ws *WorkingSet) Found(i int) bool { return ws.refs[i] != 0 }

// Begin says that the rows will be changed from now on, see PullAhead. Other sets need no
// Begin, and a second one does nothing. It may wait for a snapshot that needs the rows as they are.
func (ws *WorkingSet) Begin() {
	if f := ws.begin; f != nil {
		ws.begin = nil
		f(ws)
	}
}

// Release unpins the rows. The set must not be used afterwards. Calling it
// twice is a bug and panics.
func (ws *WorkingSet) Release() {
	f := ws.release
	if f == nil {
		panic("sparsetable: working set released twice")
	}
	ws.release = nil
	f(ws)
}
