package kernels_test

import (
	"errors"
	"testing"

	"aibox/gpu"
)

// Moves of rows whose operands do not belong together are refused, and no rows need no operands.
func TestMovesThatDoNotFit(t *testing.T) {
	k, s, m := refusing(t)
	const words, n = 10, 3
	table, dense, index := gpu.Part(m, 0, 400), gpu.Part(m, 400, 4*words*n), gpu.Part(m, 600, 4*n)
	shorter := func(r gpu.Region) gpu.Region { return gpu.Part(m, r.Offset, r.Width-4) }
	apart := gpu.Region{Memory: m, Offset: 400, Width: 4 * words, Rows: n, Pitch: 8 * words}
	for what, c := range map[string]struct {
		table, dense, index gpu.Region
		words, n            int
	}{
		"no words":                        {table, dense, index, 0, n},
		"fewer than no words":             {table, dense, index, -1, n},
		"fewer than no rows":              {table, dense, index, words, -1},
		"fewer words than the rows have":  {table, shorter(dense), index, words, n},
		"an index that is too short":      {table, dense, shorter(index), words, n},
		"a table with no row":             {gpu.Part(m, 0, 4*words-4), dense, index, words, n},
		"rows that are apart":             {table, apart, index, words, n},
		"a table with gaps":               {apart, gpu.Part(m, 1024, 4*words*n), index, words, n},
		"no memory":                       {table, gpu.Region{}, index, words, n},
		"no index":                        {table, dense, gpu.Region{}, words, n},
		"the table's own rows":            {table, gpu.Part(m, 280, 120+40), index, words, n},
		"more words than an int32 counts": {table, dense, index, 1 << 62, n},
		"more rows than an int32 counts":  {table, dense, index, words, 1 << 60},
	} {
		for _, err := range []error{
			k.TakeRows(s, c.dense, c.table, c.index, c.words, c.n), k.PutRows(s, c.table, c.dense, c.index, c.words, c.n),
		} {
			if !errors.Is(err, gpu.InvalidArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if err := k.TakeRows(s, gpu.Region{}, gpu.Region{}, gpu.Region{}, words, 0); err != nil {
		t.Error(err)
	}
	if err := k.PutRows(s, gpu.Region{}, gpu.Region{}, gpu.Region{}, words, 0); err != nil {
		t.Error(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Error(err)
	}
}
