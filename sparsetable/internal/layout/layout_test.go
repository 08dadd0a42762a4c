package layout

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// TestLayoutDividesTheRow checks that values, state and statistics make up a row, and that writing
// one of them does not change another.
func TestLayoutDividesTheRow(t *testing.T) {
	for dim := 1; dim <= 35; dim++ {
		for f := range valueFormats {
			for _, state := range []int{0, 1, dim} {
				l := Layout{ValueDim: dim, StateDim: state, Format: f}
				words := dim
				if f != Float32 {
					words = (dim + 1) / 2
				}
				if want := words + state + 4; l.Words() != want || l.Bytes() != 4*want {
					t.Fatalf("%v: %d words, %d bytes, want %d words", l, l.Words(), l.Bytes(), want)
				}
				if err := l.Validate(); err != nil {
					t.Fatal(err)
				}
				row := make([]float32, l.Words())
				values := make([]float32, dim)
				for i := range values {
					values[i] = float32(i + 1) // which every format has
				}
				l.SetStats(row, RowStats{Show: 1.1, Click: 2.2, LastSeen: 3, Count: math.MaxUint32})
				for i := range l.State(row) {
					l.State(row)[i] = 0.1
				}
				l.StoreValues(row, values, 5, NewRounding(1, 2))
				got := make([]float32, dim)
				l.LoadValues(got, row)
				for i, v := range got {
					if v != values[i] {
						t.Fatalf("%v: value %d is %v", l, i, v)
					}
				}
				for i, s := range l.State(row) {
					if s != 0.1 {
						t.Fatalf("%v: state %d is %v", l, i, s)
					}
				}
				if len(l.State(row)) != state || l.Stats(row) != (RowStats{Show: 1.1, Click: 2.2, LastSeen: 3, Count: math.MaxUint32}) {
					t.Fatalf("%v: %d of state, %+v", l, len(l.State(row)), l.Stats(row))
				}
			}
		}
	}
}

// TestStoreDependsOnSeedUpdateAndKey checks that rounding depends on the seed, the update and the
// key, and on nothing else.
func TestStoreDependsOnSeedUpdateAndKey(t *testing.T) {
	values := make([]float32, 33)
	for i := range values {
		values[i] = 1 / float32(i+3)
	}
	for _, f := range []ValueFormat{Float16, BFloat16} {
		l := Layout{ValueDim: len(values), Format: f}
		store := func(seed, n, key uint64) string {
			row := make([]float32, l.Words())
			l.StoreValues(row, values, key, NewRounding(seed, n))
			return string(appendWords(nil, row))
		}
		base := store(1, 2, 3)
		if store(1, 2, 3) != base {
			t.Errorf("%v: the same rounding twice differs", f)
		}
		for what, other := range map[string]string{"seed": store(2, 2, 3), "update": store(1, 3, 3), "key": store(1, 2, 4)} {
			if other == base {
				t.Errorf("%v: another %s, the same roundings", f, what)
			}
		}
	}
}

func TestLayoutErrors(t *testing.T) {
	for _, l := range []Layout{
		{}, {ValueDim: -1}, {ValueDim: 1, StateDim: -1}, {ValueDim: 1 << 16}, {ValueDim: 2*(1<<16-statWords) + 1, Format: Float16},
		{ValueDim: 1, Format: valueFormats}, {ValueDim: math.MaxInt}, {ValueDim: 1, StateDim: math.MaxInt}, {ValueDim: math.MaxInt, Format: BFloat16},
	} {
		if err := l.Validate(); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Values of packed values does not panic")
		}
	}()
	Layout{ValueDim: 2, Format: Float16}.Values(make([]float32, 5))
}

// TestLayoutAsJSON checks that layouts that were written before there were formats are float32.
func TestLayoutAsJSON(t *testing.T) {
	for text, want := range map[string]Layout{
		`{"value_dim":3,"state_dim":1}`:                            {ValueDim: 3, StateDim: 1},
		`{"value_dim":3,"state_dim":0,"value_format":"float32"}`:   {ValueDim: 3},
		`{"value_dim":16,"state_dim":2,"value_format":"bfloat16"}`: {ValueDim: 16, StateDim: 2, Format: BFloat16},
	} {
		var l Layout
		if err := json.Unmarshal([]byte(text), &l); err != nil || l != want {
			t.Errorf("%s is %v, %v", text, l, err)
		}
		again, err := json.Marshal(l)
		var back Layout
		if err != nil || json.Unmarshal(again, &back) != nil || back != want {
			t.Errorf("%s written again is %s, %v", text, again, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"value_format":"int8"}`), new(Layout)); err == nil || !strings.Contains(err.Error(), "bfloat16") {
		t.Errorf("int8: %v", err)
	}
	if _, err := json.Marshal(Layout{Format: valueFormats}); err == nil {
		t.Error("an unknown format was written")
	}
}
