package tune

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"aibox/internal/humanize"
)

// Table is a table of the results, and what follows from them.
func (b *Best) Table(rounds []Round) (string, error) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "round\ttrial\texamples\theld out\tlog loss\tAUC\tbest epoch\ttime\tsettings")
	for _, r := range b.Results {
		examples := "all"
		if n := rounds[r.Round-1].Examples; n > 0 {
			examples = fmt.Sprint(n)
		}
		changes := (&Trial{r.Trial, r.Settings}).Changes()
		took := humanize.Seconds(time.Duration(r.Seconds * float64(time.Second)))
		if r.Failure != "" {
			fmt.Fprintf(t, "%d\t%d\t%s\t\tfailed\t\t\t%s\t%s\n", r.Round, r.Trial, examples, took, changes)
			continue
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%.5f\t%.5f\t%d\t%s\t%s\n", r.Round, r.Trial, examples, r.HeldOut, r.LogLoss, r.AUC, r.Epoch, took, changes)
	}
	err := t.Flush()
	fmt.Fprintf(&text, "\n%s\n", b.verdict())
	return text.String(), err
}

// verdict says in a sentence what the search found.
func (b *Best) verdict() string {
	r, was := b.Result, b.AsItIs
	switch {
	case r.Trial == 0:
		return "No other settings were better than those of the job."
	case was.Failure != "":
		return fmt.Sprintf("The settings of trial %d are the best, with a log loss of %.5f and an AUC of %.5f; those of the job made no model: %s.", r.Trial, r.LogLoss, r.AUC, was.Failure)
	}
	return fmt.Sprintf("The settings of trial %d are the best: log loss %.5f (%+.5f against the job as it is), AUC %.5f (%+.5f). Each was trained once, with one seed.",
		r.Trial, r.LogLoss, r.LogLoss-was.LogLoss, r.AUC, r.AUC-was.AUC)
}
