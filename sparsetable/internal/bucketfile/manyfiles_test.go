package bucketfile

import (
	"math"
	"testing"
)

// A directory that grows far beyond its files' usual size has larger files, not
// ever more of them: each takes a descriptor.
func TestManyFiles(t *testing.T) {
	opts := smallOptions(100)
	opts.FileBytes, opts.BufferBytes = 64<<10, 8<<10
	m := newModel(t, 1, 1, opts)
	m.mustOpen()
	const grown = 4 // times the size from which on there are manyFiles
	for slot := uint32(0); ; slot++ {
		must(t, m.append(slot, 4, false))
		if all, _ := m.set.Space(); all.LiveBytes > grown*manyFiles*opts.FileBytes {
			break
		}
	}
	// Each of the later files has the manyFiles-th part of what was there by then, in
	// whole buffers.
	want := manyFiles * (2 + math.Log(grown))
	if all, _ := m.set.Space(); all.Files < manyFiles || float64(all.Files) > want {
		t.Errorf("%d live bytes are in %d files, want %g at most", all.LiveBytes, all.Files, want)
	}
	must(t, m.set.Close())
}
