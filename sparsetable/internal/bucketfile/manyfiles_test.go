package bucketfile

import (
	"fmt"
	"math"
	"testing"
)

// If a table grows far beyond the usual size of its files, its files become larger instead of more
// and more numerous, because each takes a file descriptor. The limit is for all directories
// together, however many there are.
func TestManyFiles(t *testing.T) {
	for _, dirs := range []int{1, 4, 12} {
		t.Run(fmt.Sprint(dirs, " directories"), func(t *testing.T) {
			opts := smallOptions(100)
			opts.FileBytes, opts.BufferBytes = 64<<10, 8<<10
			m := newModel(t, 1, dirs, opts)
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
		})
	}
}
