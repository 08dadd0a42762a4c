package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"aibox/reader/source"
)

// read hands units to a tally, until an error. Each has ten rows, of which some are bad,
// some of the file's lines are much too long, and some units lose what follows.
func read(t *Tally, from, until int) error {
	for u := from; u < until; u++ {
		file := source.File{URI: string(rune('a' + u/4)), Size: 4000}
		so := SoFar{Rows: int64(10 * u), Bytes: int64(1000 * u)}
		if u%4 == 0 {
			if err := t.Enter(file, so); err != nil {
				return err
			}
		}
		t.Head(50, u%3 == 0)
		for i := range 10 {
			t.Rows(1)
			so.Rows++
			if i < u%3 {
				row := BadRow{URI: file.URI, Line: int64(10*(u%4) + i), Reason: ReasonNumber + Reason(u%2)}
				if err := t.Bad(row, so.Rows); err != nil {
					return err
				}
			}
		}
		if u%5 == 1 {
			t.LongLine(so.Rows, so.Bytes, 100, true)
		}
		so.Bytes += 1000
		t.Read(1000, int64(2000*(u%4+1)))
		if u%7 == 3 {
			if err := t.Lose(int64(10*(u%4)), &Damage{Cause: "damage", Bytes: 300, Rows: -1, Cut: u%2 == 1}, so); err != nil {
				return err
			}
		}
	}
	return nil
}

// readToEnd hands the rest of the units to a tally, and has it check them.
func readToEnd(t *Tally, from, units int) error {
	if err := read(t, from, units); err != nil {
		return err
	}
	return t.Judge(SoFar{Rows: int64(10 * units), Bytes: int64(1000 * units)})
}

// TestTallyGoesOn checks that a tally that continues from the encoded state and counts of another
// one ends with the same counts, error and quarantine, wherever it continues.
func TestTallyGoesOn(t *testing.T) {
	const units = 16
	begin := func(l Limits, quarantine *bytes.Buffer) *Tally {
		return New(l, Input{Bytes: 1000 * units, Files: units / 4}, quarantine, 6, slog.New(slog.DiscardHandler))
	}
	start := State{InputRows: -1}
	tooBad, tooLost := new(BadRowsError), new(LostDataError)
	for name, c := range map[string]struct {
		limits Limits
		want   any
	}{
		"no limit": {Limits{BadRows: -1, BadFraction: -1, LostFraction: -1, LineBytes: 70}, nil},
		"bad rows": {Limits{BadRows: 2, BadFraction: -1, LostFraction: -1, LineBytes: 70}, &tooBad},
		"rows":     {Limits{BadRows: 10, BadFraction: -1, LostFraction: -1, LineBytes: 70}, &tooLost},
		"fraction": {Limits{BadRows: -1, BadFraction: 0.03, LostFraction: -1, LineBytes: 70}, &tooBad},
		"lost":     {Limits{BadRows: -1, BadFraction: -1, LostFraction: 0.235, LineBytes: 70}, &tooLost},
	} {
		var quarantine bytes.Buffer
		whole := begin(c.limits, &quarantine)
		whole.Restore(source.File{URI: "a", Size: 4000}, &start, &Counts{}, 0)
		wantErr := readToEnd(whole, 0, units)
		if (c.want == nil) != (wantErr == nil) || c.want != nil && !errors.As(wantErr, c.want) {
			t.Fatalf("%s: %v", name, wantErr)
		}
		for at := range units {
			var written bytes.Buffer
			first := begin(c.limits, &written)
			first.Restore(source.File{URI: "a", Size: 4000}, &start, &Counts{}, 0)
			if read(first, 0, at) != nil {
				break // the limit was exceeded before
			}
			state, counts := first.State(), first.Counts()
			text, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			var again State
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			second := begin(c.limits, &written)
			second.Restore(source.File{URI: string(rune('a' + max(at-1, 0)/4)), Size: 4000}, &again, &counts, int64(1000*at))
			if err := readToEnd(second, at, units); !reflect.DeepEqual(err, wantErr) || !reflect.DeepEqual(second.Counts(), whole.Counts()) {
				t.Errorf("%s, from unit %d: %v\n%+v, not %v\n%+v", name, at, err, second.Counts(), wantErr, whole.Counts())
			}
			if written.String() != quarantine.String() {
				t.Errorf("%s, from unit %d: the quarantine has\n%s, not\n%s", name, at, &written, &quarantine)
			}
		}
	}
}

// TestLostRowsCountAsBadRows checks that lost rows count for the limit on the number of bad rows,
// whether the loss comes before the bad rows or after them.
func TestLostRowsCountAsBadRows(t *testing.T) {
	for _, lostFirst := range []bool{false, true} {
		for bad, wantErr := range map[int]bool{2: false, 3: true} {
			l := Limits{BadRows: 10, BadFraction: -1, LostFraction: -1}
			tally := New(l, Input{Bytes: 1000, Files: 1}, nil, 0, slog.New(slog.DiscardHandler))
			tally.Restore(source.File{URI: "a", Size: 1000}, &State{InputRows: -1}, &Counts{}, 0)
			lose := func() error { return tally.Lose(1, &Damage{Bytes: 300, Rows: 8}, SoFar{Rows: 20, Bytes: 500}) }
			var err error
			if lostFirst {
				err = lose()
			}
			for i := 0; i < bad && err == nil; i++ {
				err = tally.Bad(BadRow{URI: "a", Reason: ReasonNumber}, int64(i+1))
			}
			if !lostFirst && err == nil {
				err = lose()
			}
			var lost *LostDataError
			if errors.As(err, &lost) != wantErr || !wantErr && err != nil {
				t.Errorf("lost first: %v, bad rows: %d: %v", lostFirst, bad, err)
			} else if wantErr && !strings.Contains(err.Error(), "the limit of 10 bad rows (max_bad_rows), since 3 rows are bad and 8 are lost") {
				t.Errorf("lost first: %v: %v", lostFirst, err)
			}
		}
	}
}
