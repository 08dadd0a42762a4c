package score

import (
	"encoding/json"
	"testing"
)

// TestHistogramJSON: a histogram comes back as it was, also from what earlier versions wrote;
// one that is damaged is an error.
func TestHistogramJSON(t *testing.T) {
	h := NewHistogram(8)
	h.bins[0], h.bins[3], h.bins[7] = bin{neg: 1}, bin{neg: 2.5, pos: 4}, bin{pos: 3}
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(data), `{"bins":8,"found":[[0,1,0],[3,2.5,4],[7,0,3]]}`} {
		var got Histogram
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(got.bins) != len(h.bins) {
			t.Fatalf("%s: %d bins", text, len(got.bins))
		}
		for i, b := range h.bins {
			if got.bins[i] != b {
				t.Errorf("%s: bin %d is %v, want %v", text, i, got.bins[i], b)
			}
		}
	}
	for _, text := range []string{
		`{"bins":8,"skipped":[8],"negatives":[1],"positives":[1]}`,
		`{"bins":8,"skipped":[7,0],"negatives":[1,1],"positives":[1,1]}`,
		`{"bins":8,"skipped":[3,-2],"negatives":[1,1],"positives":[1,1]}`,
		`{"bins":8,"skipped":[1,1],"negatives":[1],"positives":[1,1]}`,
		`{"bins":8,"skipped":[1],"negatives":[1],"positives":[1,1]}`,
		`{"bins":8,"found":[[8,1,0]]}`, `{"bins":1}`,
	} {
		if json.Unmarshal([]byte(text), new(Histogram)) == nil {
			t.Errorf("%s is taken for a histogram", text)
		}
	}
}
