package reader

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"aibox/reader/internal/faults"
)

// Split divides the examples of an input, before sampling, into a head and a tail. It can
// be written as JSON and read back.
type Split struct {
	Rows int64 `json:"rows"` // good rows of the input, or as many as Options.Limit leaves
	Head int64 `json:"head"` // those of the head; the others are the tail
	// Limited says that Options.Limit ends the tail, and not the end of the input.
	Limited bool `json:"limited"`

	// Place is the beginning of a unit with the last rows of the head, or before it, and
	// Before the number of good rows before it.
	Place  Position `json:"place"`
	Before int64    `json:"before"`
}

// Part is the part of a Split that is read.
type Part uint8

// The parts.
const (
	Head Part = iota
	Tail
)

// maxPlaces is the number of candidate places for the start of a tail that a reading remembers. A
// reading of the tail also decodes the data between the place and the tail, which is less than a
// thousandth of the input.
const maxPlaces = 4096

// SplitTail reads the whole input once and returns its split into a tail, which has this
// share of the examples, rounded to a whole number of them, and a head. The limits on bad
// rows and losses apply; nothing is logged or written to the quarantine, since reading the
// two parts does both. The numbers of rows do not depend on Threads and ChunkBytes; Place
// depends on ChunkBytes, with which the tail must be read.
//
// A row counts before sampling, so that the tail is the same in all epochs. With
// Options.Limit, the input ends where the limit ends it in the epoch of the options.
func SplitTail(ctx context.Context, o Options, share float64) (*Split, error) {
	o.Split, o.Quarantine = nil, nil
	rows, err := openScan(ctx, o)
	if err != nil {
		return nil, err
	}
	split, err := splitTail(ctx, rows, share)
	return split, AsInputError(ctx, errors.Join(err, rows.close()))
}

func splitTail(ctx context.Context, r *rows, share float64) (*Split, error) {
	places, every, units := []Position(nil), 1, 0
	for {
		_, _, _, err := r.run(ctx, math.MaxInt32)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n := len(places); n > 0 && places[n-1].sameUnit(&r.at) {
			continue
		}
		if units++; units%every != 0 {
			continue
		}
		if len(places) == maxPlaces {
			places, every = everySecond(places), 2*every
		}
		p := r.at
		p.Skip, p.Counts.Bad, p.Counts.Lost = 0, nil, nil
		places = append(places, p)
	}
	s := &Split{Rows: r.counts.Examples + r.counts.Dropped, Limited: r.block != nil}
	s.Head = s.Rows - int64(math.Round(share*float64(s.Rows)))
	if s.Rows == 0 {
		return nil, r.noExamples()
	}
	// The last row of the head is after the place, since bad rows and losses between that
	// row and the next good one belong to the tail.
	for _, p := range slices.Backward(places) {
		s.Place, s.Before = p, p.Counts.Examples+p.Counts.Dropped
		if s.Before < s.Head {
			break
		}
	}
	// A reading of the tail ignores whatever was found before the tail.
	read := s.Place.Counts.BytesRead
	s.Place.Counts, s.Place.FileStart = Counts{BytesRead: read}, faults.SoFar{Bytes: read}
	s.Place.MissingBytes, s.Place.UnitRows = 0, 0
	return s, nil
}

func (p *Position) sameUnit(q *Position) bool { return p.File == q.File && p.Unit == q.Unit }

func everySecond(places []Position) []Position {
	kept := places[:0]
	for i := 0; i < len(places); i += 2 {
		kept = append(kept, places[i])
	}
	return kept
}

// span limits a reading to a part of a split.
type span struct {
	skip int64 // good rows that are still to be skipped
	most int64 // good rows after those, before sampling; -1: all
}

// spanOf is the part that the options ask for.
func spanOf(o *Options) span {
	switch s := o.Split; {
	case s == nil:
		return span{most: -1}
	case o.Part == Head:
		return span{most: s.Head}
	case s.Limited:
		return span{skip: s.Head - s.Before, most: s.Rows - s.Head}
	default:
		return span{skip: s.Head - s.Before, most: -1}
	}
}

// startOf is the place at which decoding begins; nil: the beginning of the input.
func startOf(o *Options) *Position {
	switch {
	case o.Start != nil:
		return &o.Start.Position
	case o.Split != nil && o.Part == Tail:
		return &o.Split.Place
	}
	return nil
}
