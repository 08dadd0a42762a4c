package ssd_test

import (
	"io"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// countSource yields n rows of scattered keys.
type countSource struct {
	layout sparsetable.Layout
	row    []float32
	next   int
	n      int
}

func (s *countSource) Next() (uint64, []float32, error) {
	if s.next == s.n {
		return 0, nil, io.EOF
	}
	s.row[0] = float32(s.next)
	s.next++
	return tabletest.SpreadKey(s.next - 1), s.row, nil
}

func newCountSource(l sparsetable.Layout, n int) *countSource {
	s := &countSource{layout: l, row: make([]float32, l.Words()), n: n}
	l.SetStats(s.row, sparsetable.RowStats{Count: 1})
	return s
}

// BenchmarkSSDImport imports b.N rows of 96 bytes into an empty table on the
// file system of the temporary directory, and scans it.
func BenchmarkSSDImport(b *testing.B) {
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	tab, err := sparsetable.Open(b.Context(), sparsetable.Options{Kind: sparsetable.KindSSD, Dir: b.TempDir(), Layout: l, MemoryBytes: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("import", func(b *testing.B) {
		b.SetBytes(int64(l.Bytes()))
		if n, err := tab.Import(b.Context(), newCountSource(l, b.N)); n != int64(b.N) || err != nil {
			b.Fatal(n, err)
		}
	})
	b.Run("scan", func(b *testing.B) {
		n := 0
		for n < b.N {
			if err := tab.Scan(b.Context(), func(uint64, []float32) error {
				if n++; n >= b.N {
					return io.EOF
				}
				return nil
			}); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(l.Bytes()))
	})
	st := tab.Stats()
	b.Logf("%d rows, %d slots, %d MB on disk, write amplification %.2f", st.Rows, st.Slots, st.DiskBytes>>20, st.WriteAmplification)
	if err := tab.Close(); err != nil {
		b.Fatal(err)
	}
}
