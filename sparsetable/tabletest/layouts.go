package tabletest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
)

// layouts returns layouts in every format, with numbers of values that are odd or do not
// fill a vector register.
func layouts() (all []sparsetable.Layout) {
	for i, dim := range []int{1, 2, 7, 17, 33} {
		for f := range sparsetable.ValueFormats() {
			all = append(all, sparsetable.Layout{ValueDim: dim, StateDim: i, Format: sparsetable.ValueFormat(f)})
		}
	}
	return all
}

// fractions returns the values that training gives a row, which need more than 16 bits.
func fractions(dim int, key uint64) []float32 {
	v := make([]float32, dim)
	for j := range v {
		v[j] = (float32(key%1000) + 1) / float32(j+3)
	}
	return v
}

// testLayouts trains and saves tables of every layout, and opens them again with the same layout,
// with none, and, which must fail, with another one.
func testLayouts(t *testing.T, k Kind) {
	const n = 3000
	keys := sequence(5, 3, n)
	for _, l := range layouts() {
		t.Run(fmt.Sprintf("%v %d+%d", l.Format, l.ValueDim, l.StateDim), func(t *testing.T) {
			o := options(k.disk())
			o.Layout, o.Init = l, nil
			rounding := sparsetable.NewRounding(1, 2)
			tab := mustOpen(t, k, o)
			ws := mustPull(t, tab, keys, sparsetable.PullCreate)
			want := make([][]float32, n)
			for i, key := range keys {
				row := ws.Row(i)
				for j := range l.State(row) {
					l.State(row)[j] = float32(key) / 3
				}
				l.StoreValues(row, fractions(l.ValueDim, key), key, rounding)
				l.SetStats(row, sparsetable.RowStats{Show: 0.5, Click: 0.25, LastSeen: 7, Count: uint32(key)})
				want[i] = slices.Clone(row)
			}
			ws.Release()
			mustSave(t, tab, "")
			digest, err := sparsetable.Digest(t.Context(), tab)
			if err != nil {
				t.Fatal(err)
			}
			mustClose(t, tab)

			for f := range sparsetable.ValueFormats() {
				for _, change := range []sparsetable.Layout{{Format: sparsetable.ValueFormat(f)}, {Format: l.Format, ValueDim: 1}, {Format: l.Format, StateDim: 1}} {
					other := sparsetable.Layout{ValueDim: l.ValueDim + change.ValueDim, StateDim: l.StateDim + change.StateDim, Format: change.Format}
					if other == l {
						continue
					}
					o.Layout = other
					_, err := k.Open(t.Context(), o)
					var wrong *sparsetable.LayoutError
					if !errors.As(err, &wrong) || wrong.Have != l || wrong.Want != other || !strings.Contains(err.Error(), l.String()) || !strings.Contains(err.Error(), other.String()) {
						t.Fatalf("opened as %v: %v", other, err)
					}
				}
			}
			for _, as := range []sparsetable.Layout{l, {}} {
				o.Layout = as
				tab = mustOpen(t, k, o)
				if tab.Layout() != l {
					t.Fatalf("layout %v, want %v", tab.Layout(), l)
				}
				infos, err := tab.Snapshots()
				if err != nil || len(infos) != 1 || infos[0].Layout != l {
					t.Fatalf("snapshots %+v, %v", infos, err)
				}
				if d, err := sparsetable.Digest(t.Context(), tab); err != nil || d != digest {
					t.Fatalf("digest %x, %v, was %x", d, err, digest)
				}
				values := make([]float32, l.ValueDim)
				ws := mustPull(t, tab, keys, sparsetable.PullCreate)
				for i, key := range keys {
					if !equalRows(ws.Row(i), want[i]) {
						t.Fatalf("row of key %d is %v, was %v", key, ws.Row(i), want[i])
					}
					l.LoadValues(values, ws.Row(i))
					for j, v := range fractions(l.ValueDim, key) {
						if bound := float64(v) * precision(l.Format); math.Abs(float64(values[j]-v)) > bound {
							t.Fatalf("value %d of key %d is %v, was %v", j, key, values[j], v)
						}
					}
				}
				ws.Release()
				mustClose(t, tab)
			}
		})
	}
}

// precision is the largest relative error of a number in format f.
func precision(f sparsetable.ValueFormat) float64 {
	switch f {
	case sparsetable.Float16:
		return math.Ldexp(1, -10)
	case sparsetable.BFloat16:
		return math.Ldexp(1, -7)
	}
	return 0
}
