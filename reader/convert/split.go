package convert

import (
	"math"

	"aibox/reader/internal/hashes"
)

// Split divides rows between two files. The zero Split writes one file.
type Split struct {
	Fraction float64 // share of the rows that go to the first file, in (0,1)
	// Random draws each row's file by hash(Seed, number of the row); otherwise
	// the first rows, floor(Fraction * rows), go to the first file.
	Random bool
	Seed   uint64
}

func (s *Split) check(files int) error {
	switch {
	case s.Fraction == 0 && files == 1:
		return nil
	case s.Fraction == 0:
		return optionsErrorf("convert: %d output files; without a split there is one", files)
	case !(s.Fraction > 0 && s.Fraction < 1):
		return optionsErrorf("convert: split at %v: want a share between 0 and 1", s.Fraction)
	case files != 2:
		return optionsErrorf("convert: %d output files; a split writes two", files)
	}
	return nil
}

// needsTotal says whether part needs to know the number of rows.
func (s *Split) needsTotal() bool { return s.Fraction > 0 && !s.Random }

// part is the file of row n of total.
func (s *Split) part(n, total int64) int {
	switch {
	case s.Fraction == 0:
		return 0
	case s.Random:
		if hashes.Unit(s.Seed, hashes.Split, 0, uint64(n)) < s.Fraction {
			return 0
		}
		return 1
	// A fraction such as 0.8 is not exact in binary: 0.8 of 5 rows is 4 of them.
	case float64(n) < math.Floor(s.Fraction*float64(total)+1e-9*float64(total)):
		return 0
	}
	return 1
}
