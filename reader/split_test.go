package reader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// examplesOf reads the input and returns its examples as text, what was written to the
// quarantine, and the last counts.
func examplesOf(t *testing.T, o Options) (examples []string, bad string, counts Counts) {
	t.Helper()
	var quarantine bytes.Buffer
	o.Quarantine = &quarantine
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		p, err := r.Next(t.Context())
		if err != nil {
			if !strings.HasPrefix(err.Error(), "EOF") && !strings.Contains(err.Error(), ErrNoExamples.Error()) {
				t.Fatal(err)
			}
			return examples, quarantine.String(), r.Counts()
		}
		for i := range p.Batches {
			b := &p.Batches[i]
			fields := (len(b.Offsets) - 1) / b.N
			for e := range b.N {
				text := fmt.Sprint(b.Labels[e], b.Dense[e*len(b.Dense)/b.N:(e+1)*len(b.Dense)/b.N])
				for f := range fields {
					text += ";"
					for _, row := range b.Index[b.Offsets[e*fields+f]:b.Offsets[e*fields+f+1]] {
						text += fmt.Sprintf(" %x", p.Keys[b.Rows[row]])
					}
				}
				examples = append(examples, text)
			}
		}
	}
}

var estimates = regexp.MustCompile(`,"lost_(bytes|rows)":[0-9]+`)

// TestSplitTail checks that head and tail together are the input, whatever its format and wherever
// the split is: with examples, bad rows and losses, each exactly once.
func TestSplitTail(t *testing.T) {
	for input, o := range cursorInputs(t) {
		if o.Schema.Format == FormatCriteo {
			o.MaxLineBytes = 1000
		}
		for _, chunk := range []int64{13, 700, 1 << 20} {
			if o.ChunkBytes = chunk; input == "large row groups" && chunk < 1<<20 {
				continue
			}
			o.Threads = 2
			all, bad, counts := examplesOf(t, o)
			shares := map[int64][]float64{13: {0.4}, 700: {0, 0.1, 0.9, 1}, 1 << 20: {0.6}}
			for _, share := range shares[chunk] {
				name := fmt.Sprintf("%s in chunks of %d, a tail of %g", input, chunk, share)
				o.Threads = 3
				s, err := SplitTail(t.Context(), o, share)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				var back Split
				if err := json.Unmarshal(inJSON(t, s), &back); err != nil {
					t.Fatal(err)
				}
				if tail := float64(s.Rows - s.Head); s.Rows != int64(len(all)) || tail < share*float64(s.Rows)-0.5 || tail > share*float64(s.Rows)+0.5 {
					t.Errorf("%s: %d of %d examples, want %g of %d", name, s.Rows-s.Head, s.Rows, share, len(all))
				}
				part := o
				part.Split = &back
				head, headBad, headCounts := examplesOf(t, part)
				part.Part, part.Threads = Tail, 1
				tail, tailBad, tailCounts := examplesOf(t, part)
				if int64(len(head)) != s.Head || !slices.Equal(append(head, tail...), all) {
					t.Errorf("%s: %d examples in the head and %d in the tail are not the %d examples of the input", name, len(head), len(tail), len(all))
				}
				// How many rows are lost is estimated from those that were read before.
				if estimates.ReplaceAllString(headBad+tailBad, "") != estimates.ReplaceAllString(bad, "") {
					t.Errorf("%s: bad rows are\n%s and\n%s, want\n%s", name, headBad, tailBad, bad)
				}
				if headCounts.BadRows+tailCounts.BadRows != counts.BadRows || headCounts.Rows+tailCounts.Rows != counts.Rows ||
					len(headCounts.Lost)+len(tailCounts.Lost) != len(counts.Lost) {
					t.Errorf("%s: the counts are\n%+v and\n%+v, want\n%+v", name, headCounts, tailCounts, counts)
				}
				if tailCounts.BytesRead != counts.BytesRead {
					t.Errorf("%s: the tail ends at byte %d, want %d", name, tailCounts.BytesRead, counts.BytesRead)
				}
			}
		}
	}
}

// TestSplitOfASample checks that sampling drops the same examples from a head as from the whole
// input, and that a limit applies to head and tail together.
func TestSplitOfASample(t *testing.T) {
	o := cursorInputs(t)["csv.gz"]
	o.NegativeSampling = 0.4
	all, _, counts := examplesOf(t, o)
	s, err := SplitTail(t.Context(), o, 0.25)
	if err != nil || s.Rows != counts.Examples+counts.Dropped {
		t.Fatalf("%+v, %v; want %d", s, err, counts.Examples+counts.Dropped)
	}
	part := o
	part.Split = s
	head, _, headCounts := examplesOf(t, part)
	if len(head) == len(all) || !slices.Equal(head, all[:len(head)]) || headCounts.Examples+headCounts.Dropped != s.Head {
		t.Errorf("the head of a sample is\n%s, want the beginning of\n%s", head, all)
	}
	o.NegativeSampling, o.Limit = 1, 41
	if s, err = SplitTail(t.Context(), o, 0.25); err != nil || s.Rows != 41 || s.Head != 31 {
		t.Fatalf("%+v, %v", s, err)
	}
	o.Limit = 0
	all, _, _ = examplesOf(t, o)
	o.Split, o.Part = s, Tail
	if tail, _, _ := examplesOf(t, o); !slices.Equal(tail, all[31:41]) {
		t.Errorf("the tail is\n%s, want\n%s", tail, all[31:41])
	}
}

// TestSplitOfManyUnits checks that only some of the possible beginnings of a tail are kept, and
// that what is decoded before the tail is a small part of the input.
func TestSplitOfManyUnits(t *testing.T) {
	o := testOptions(adSchema(), write(t, t.TempDir(), "log.csv", bytes.Repeat([]byte("1,2,a,b|c\n0,3,d,e\n"), 3*maxPlaces)))
	o.ChunkBytes = 10
	for _, share := range []float64{0.001, 0.3, 0.999} {
		s, err := SplitTail(t.Context(), o, share)
		if err != nil {
			t.Fatal(err)
		}
		if skipped := s.Head - s.Before; s.Rows != 6*maxPlaces || skipped < 0 || skipped > s.Rows/1000 {
			t.Errorf("a tail of %g: %d of %d rows are skipped", share, skipped, s.Rows)
		}
	}
}

// TestCursorsOfAHead checks that reading of a head can continue at each of its cursors, and not at
// those of another part.
func TestCursorsOfAHead(t *testing.T) {
	for _, input := range []string{"csv", "csv.zst", "parquet"} {
		o := cursorInputs(t)[input]
		o.NegativeSampling, o.ShuffleBuffer = 0.7, 10
		var err error
		if o.Split, err = SplitTail(t.Context(), o, 0.3); err != nil {
			t.Fatal(err)
		}
		whole := checkCursors(t, "head of "+input, o)
		o.Split = nil
		if rest := readFrom(t, o, whole.cursors[2], nil); !strings.Contains(rest.end, `the option "part" was`) {
			t.Errorf("%s: %s", input, rest.end)
		}
	}
}
