package contract

import (
	"math"
	"testing"

	"aibox/sparsetable/internal/layout"
)

func TestDecay(t *testing.T) {
	for _, c := range []struct {
		factor float32
		days   uint32
		want   float64
	}{{0.5, 0, 1}, {0.5, 1, 0.5}, {0.5, 10, 1.0 / 1024}, {1, math.MaxUint32, 1}, {0, 3, 0}, {0.98, 100, math.Pow(float64(float32(0.98)), 100)}} {
		if got := Decay(c.factor, c.days); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Decay(%v, %d) = %v, want %v", c.factor, c.days, got, c.want)
		}
	}
}

func TestExpires(t *testing.T) {
	rule := ExpiryRule{Today: 10, UnseenDays: 5, MinShow: 2, ShowDecay: 0.5}
	for _, c := range []struct {
		st   layout.RowStats
		want bool
	}{
		{layout.RowStats{Show: 100, LastSeen: 5}, false},
		{layout.RowStats{Show: 100, LastSeen: 4}, true}, // unseen for 6 days
		{layout.RowStats{Show: 4, LastSeen: 9}, false},  // decayed to 2
		{layout.RowStats{Show: 3, LastSeen: 9}, true},
		{layout.RowStats{Show: 2, LastSeen: 400}, false}, // from the future
	} {
		if got := rule.Expires(c.st); got != c.want {
			t.Errorf("%+v: %v", c.st, got)
		}
	}
	if (ExpiryRule{Today: 1 << 30}).Expires(layout.RowStats{}) {
		t.Error("the zero rule expires a row")
	}
}
