package decay_test

import (
	"slices"
	"testing"

	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// TestWords checks that the words of a timeline change only when it gets longer, which is seldom.
func TestWords(t *testing.T) {
	h, _ := (*decay.History)(nil).Continued(0, decay.Rates{First: 0.1, Rest: 0.2}, optim.ScheduleConfig{})
	line, err := decay.NewTimeline(h)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	var before []uint64
	for step := range int64(100) {
		line.At(step)
		words := line.AppendWords(nil)
		same := slices.Equal(words, before)
		if same != (len(words) == len(before)) {
			t.Errorf("step %d: %d words, %d before, and they are the same: %v", step, len(words), len(before), same)
		}
		if !same {
			changed++
		}
		before = words
	}
	if changed < 6 || changed > 9 {
		t.Errorf("the words have changed %d times", changed)
	}
}
