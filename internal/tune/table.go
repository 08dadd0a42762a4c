package tune

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"aibox/internal/humanize"
	"aibox/internal/score"
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
		fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%.5f\t%s\t%d\t%s\t%s\n", r.Round, r.Trial, examples, r.HeldOut, r.LogLoss, figure("%.5f", r.AUC), r.Epoch, took, changes)
	}
	err := t.Flush()
	fmt.Fprintf(&text, "\n%s\n", b.verdict())
	return text.String(), err
}

// verdict says in one or two sentences what the search found.
func (b *Best) verdict() string {
	r, was := b.Result, b.AsItIs
	switch {
	case r.Trial == 0:
		return "No other settings were better than those of the job." + b.doubt()
	case was.Failure != "":
		return fmt.Sprintf("The settings of trial %d are the best: log loss %.5f, AUC %s; those of the original job produced no model: %s.", r.Trial, r.LogLoss, figure("%.5f", r.AUC), was.Failure) + b.doubt()
	}
	return fmt.Sprintf("The settings of trial %d are the best: log loss %.5f (%+.5f relative to the original job), AUC %s. Each was trained once, with one seed.",
		r.Trial, r.LogLoss, r.LogLoss-was.LogLoss, figure(fmt.Sprintf("%%.5f (%+.5f)", float64(r.AUC-was.AUC)), r.AUC)) + b.doubt()
}

// doubt returns a remark if the trials were compared on so few examples that chance decides.
func (b *Best) doubt() string {
	if n := b.Result.HeldOut; n < MinExamples/20 {
		return fmt.Sprintf(" But only %d examples were held out, so the differences may be due to chance: use more examples.", n)
	}
	return ""
}

// figure prints a metric, or "-" if it is undefined.
func figure(format string, x score.Value) string {
	if !x.Defined() {
		return "-"
	}
	return fmt.Sprintf(format, float64(x))
}
