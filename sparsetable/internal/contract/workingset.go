package contract

// WorkingSet is the pinned rows of one Pull. Position i belongs to keys[i].
//
// A position holds a reference into slabs that lie outside the garbage
// collector's heap: slab number in the high bits, row within it in the low
// ones. Row is a shift, a mask and two slices, and inlines.
type WorkingSet struct {
	refs    []uint32
	rows    Rows
	begin   func() // nil: Begin has nothing to do
	release func()
}

// Rows locates the rows that references name.
type Rows struct {
	Slabs [][]float32
	Shift uint   // the number of low bits of a reference that name the row within the slab
	Mask  uint32 // of those bits
	Words int    // of a row
}

// NewSet returns the pinned rows at refs. The methods Begin and Release call begin, which may be
// nil, and release once.
func NewSet(refs []uint32, rows Rows, begin, release func()) WorkingSet {
	return WorkingSet{refs: refs, rows: rows, begin: begin, release: release}
}

// Len is the number of rows.
func (ws *WorkingSet) Len() int { return len(ws.refs) }

// Row returns row i, Layout.Words() long, to be read and updated in place.
func (ws *WorkingSet) Row(i int) []float32 {
	r, x := ws.refs[i], &ws.rows
	off := int(r&x.Mask) * x.Words
	return x.Slabs[r>>x.Shift][off : off+x.Words : off+x.Words]
}

// Found reports whether position i has a row of its own. It is false only for PullLookup, where the
// position then refers to the shared zero row (reference 0).
func (ws *WorkingSet) Found(i int) bool { return ws.refs[i] != 0 }

// Begin says that the rows will be changed from now on, see PullAhead. Other sets need no Begin,
// and a second Begin does nothing. It may wait for a snapshot that needs the rows unchanged.
func (ws *WorkingSet) Begin() {
	if f := ws.begin; f != nil {
		ws.begin = nil
		f()
	}
}

// Release unpins the rows. The set must not be used afterwards. Calling it
// twice is a bug and panics.
func (ws *WorkingSet) Release() {
	f := ws.release
	if f == nil {
		panic("sparsetable: working set released twice")
	}
	*ws = WorkingSet{}
	f()
}
