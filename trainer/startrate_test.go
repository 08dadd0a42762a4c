package trainer

import (
	"strings"
	"testing"
)

// TestWarnsOfAnotherShareOfPositives checks that a night ends with a warning if its first examples
// have far fewer or far more clicks than the model of the night before predicts, and only then.
func TestWarnsOfAnotherShareOfPositives(t *testing.T) {
	const examples = manyExamples + 4_000
	set := []string{"training.batch_size=1000", "output.log_every=10", "training.accept_diverged=true"}
	night := func(every int, start string) string { // one of so many is positive; 0: none
		rows := rowsOf(0, examples, 1, 1)
		for i := 0; every > 0 && i < examples; i += every {
			rows[i][0] = 1
		}
		j := biasJob(t, "lr", rows, set...)
		j.Training.WarmStart = start
		warned := ""
		for _, text := range train(t, j).Warnings {
			if strings.Contains(text, "check data.label and that the clicks have been joined") {
				warned += text
			}
		}
		if start == "" && warned != "" {
			t.Errorf("a new model warns: %s", warned)
		}
		if start == "" {
			return j.Output.ModelDir
		}
		return warned
	}
	first := night(10, "")
	for _, c := range []struct {
		every int
		warns bool
	}{{10, false}, {15, false}, {7, false}, {30, true}, {3, true}, {0, true}} {
		if text := night(c.every, first); (text != "") != c.warns {
			t.Errorf("one example of %d is positive, and in the night before one of 10: it says %q", c.every, text)
		}
	}
}
