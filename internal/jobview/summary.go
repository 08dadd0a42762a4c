package jobview

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aibox/internal/humanize"
	"aibox/trainer/inference"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
)

// precisionText says in which precision matrices are multiplied, if it is not float32.
func precisionText(precision string) string {
	if precision == "" || precision == "float32" {
		return ""
	}
	return "matrix products in " + precision
}

// PrintSummary prints what a finished training job reports.
func PrintSummary(w io.Writer, s *report.Summary) error {
	var b bytes.Buffer
	if s.Already != "" {
		fmt.Fprintf(&b, "\nNothing was trained: %s is the model of this job and night. Of the run that made it:\n", s.Already)
	}
	fmt.Fprintf(&b, "\n%s trained on %d examples in %.1f s (%.0f examples/s while training); kept: epoch %d, step %d\n\n",
		s.ModelKind, s.Examples, s.ElapsedSeconds, s.ExamplesPerSec, s.KeptEpoch, s.Steps)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	groups := slices.ContainsFunc(s.Epochs, func(e report.Epoch) bool {
		return e.Eval != nil && e.Eval.GroupsUsed > 0 || e.Validation != nil && e.Validation.GroupsUsed > 0
	})
	metricsRow(t, groups, "metrics", "examples", "AUC", "log loss", "norm. ent.", "COPC", "group AUC", "base rate")
	row := func(name string, r *metrics.Report) {
		metricsRow(t, groups, name, fmt.Sprint(r.Examples), Metric(r.AUC, 5), Metric(r.LogLoss, 5), Metric(r.NormalizedEntropy, 5),
			Metric(r.COPC, 4), Metric(r.GroupAUC, 5), Metric(r.BaseRate, 5))
	}
	for _, e := range s.Epochs {
		mark := ""
		if len(s.Epochs) > 1 && e.Epoch == s.KeptEpoch {
			mark = " (kept)"
		}
		row(fmt.Sprintf("epoch %d online", e.Epoch), &e.Online)
		if e.Validation != nil {
			row(fmt.Sprintf("epoch %d validation%s", e.Epoch, mark), e.Validation)
		}
		if e.Eval != nil {
			row(fmt.Sprintf("epoch %d eval%s", e.Epoch, mark), e.Eval)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if table := s.StageTable(); table != "" {
		fmt.Fprintf(&b, "\nstages of the last epoch (AIBox, Table 1); limited by %s\n%s\n", s.Limiting, table)
	} else { // this process has only ended the job
		fmt.Fprintf(&b, "\nthe last epoch, which an earlier process trained, was limited by %s\n\n", s.Limiting)
	}
	if err := deviceTable(&b, s.Devices); err != nil {
		return err
	}
	if s.Bound != "" {
		fmt.Fprintf(&b, "bounded by    %s\n", s.Bound)
	}
	fmt.Fprintf(&b, "train rows    %s\n", readingText(s.TrainRows))
	if s.Validation != nil {
		fmt.Fprintf(&b, "validation    %s\n", readingText(s.ValidationRows))
	}
	if s.Eval != nil {
		fmt.Fprintf(&b, "eval rows     %s\n", readingText(s.EvalRows))
	}
	tableSummary(&b, &s.Table)
	snapshotText(&b, s)
	if s.ExpiredRows > 0 {
		fmt.Fprintf(&b, "expired       %d rows, after the metrics above were computed: \"aibox eval\" measures the model without these rows\n", s.ExpiredRows)
	}
	precision := precisionText(s.Precision)
	if precision != "" {
		precision = ", " + precision
	}
	fmt.Fprintf(&b, "dense part    %d parameters%s\n", s.DenseParameters, precision)
	fmt.Fprintf(&b, "peak memory   %s\n", humanize.Bytes(s.PeakMemoryBytes))
	if s.Memory.Process > 0 {
		fmt.Fprintf(&b, "              %s\n", &s.Memory)
	}
	if s.Digest != "" {
		fmt.Fprintf(&b, "digest        %s\n", s.Digest)
	} else {
		fmt.Fprintf(&b, "digest        not computed for a table on SSD; `aibox inspect --digest %s` computes it\n", s.ModelDir)
	}
	for _, k := range []string{"model", "summary", "metrics", "tensorboard", "quarantine"} {
		if f := s.Files[k]; f != "" {
			fmt.Fprintf(&b, "%-13s %s\n", k, f)
		}
	}
	switch {
	case s.NotPublished != "":
		fmt.Fprintf(&b, "not published %s\n", s.NotPublished)
	case s.Published != nil:
		for _, p := range s.Published.Earlier {
			fmt.Fprintf(&b, "published     %s, the model of an earlier run, %s uploaded in %.1f s\n", p.URI, humanize.Bytes(p.UploadedBytes), p.Seconds)
		}
		fmt.Fprintf(&b, "published     %s, %s uploaded in %.1f s\n", s.Published.URI, humanize.Bytes(s.Published.UploadedBytes), s.Published.Seconds)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// snapshotText says what snapshots cost, and whether the run was interrupted.
func snapshotText(w io.Writer, s *report.Summary) {
	if n := s.Snapshots; n.Taken+n.Failed > 0 {
		fmt.Fprintf(w, "snapshots     %d taken while training, %s, for which training waited %.1f s", n.Taken, humanize.Bytes(n.Bytes), n.StallSeconds)
		if n.Failed > 0 {
			fmt.Fprintf(w, "; %d failed", n.Failed)
		}
		fmt.Fprintln(w)
		if r := n.Remote; r != nil {
			fmt.Fprintf(w, "              %d uploaded, %s; %d attempts failed", r.Uploaded, humanize.Bytes(r.UploadedBytes), r.Failed)
			if r.Error != "" {
				fmt.Fprintf(w, ", the last one: %s", r.Error)
			}
			fmt.Fprintln(w)
		}
	}
	if r := s.Arrival; r != nil {
		fmt.Fprintf(w, "recovered     from %s: %s fetched of %s, training continued after %.1f s", r.Remote, humanize.Bytes(r.FetchedBytes), humanize.Bytes(r.Bytes), r.UsableSeconds)
		if r.WholeSeconds > r.UsableSeconds {
			fmt.Fprintf(w, ", everything was fetched after %.1f s", r.WholeSeconds)
		}
		fmt.Fprintln(w)
	}
	if n := len(s.Resumed); n > 0 {
		last := s.Resumed[n-1]
		fmt.Fprintf(w, "interrupted   %s; last resumed after step %d, in epoch %d\n", humanize.Count(int64(n), "time"), last.Step, last.Epoch)
	}
	for _, r := range s.Recoveries {
		fmt.Fprintf(w, "disk lost     %s\n", r.Text())
	}
	for _, d := range s.LeftOut {
		fmt.Fprintf(w, "disk failed   the job continued without %s: %s\n", d.Dir, d.Reason)
	}
}

// groupColumn is the index of the group AUC among the cells of metricsRow.
const groupColumn = 6

// metricsRow writes the cells of a row. If there are no groups it leaves out the group
// AUC; the table then fits 80 columns.
func metricsRow(w io.Writer, groups bool, cells ...string) {
	if !groups {
		cells = slices.Delete(cells, groupColumn, groupColumn+1)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
}

// Metric prints a figure with this many digits, or "-" if it is undefined.
func Metric(x metrics.Value, digits int) string {
	if !x.Defined() {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, float64(x))
}

func readingText(r report.Reading) string {
	text := fmt.Sprintf("%d good, %d bad", r.Good, r.Bad)
	for i, reason := range slices.Sorted(maps.Keys(r.BadByReason)) {
		sep := ", "
		if i == 0 {
			sep = " ("
		}
		text += fmt.Sprintf("%s%s %d", sep, reason, r.BadByReason[reason])
	}
	if len(r.BadByReason) > 0 {
		text += ")"
	}
	if r.Dropped > 0 {
		text += fmt.Sprintf(", %d negatives left out by sampling", r.Dropped)
	}
	if len(r.Lost) > 0 {
		text += fmt.Sprintf("; data are lost, %s of %s:", humanize.Count(r.LostBytes, "byte"), humanize.Count(int64(len(r.Lost)), "file"))
		for _, l := range r.Lost[:min(len(r.Lost), shownLosses)] {
			text += fmt.Sprintf("\n  %v", l)
		}
		if more := len(r.Lost) - shownLosses; more > 0 {
			text += fmt.Sprintf("\n  and %s, which the log and the quarantine file name", humanize.Count(int64(more), "more file"))
		}
	}
	return text
}

// shownLosses is the largest number of files with lost data that are listed.
const shownLosses = 10

// PrintEvaluation prints what eval reports.
func PrintEvaluation(w io.Writer, e *inference.Evaluation) error {
	m := &e.Metrics
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, value) }
	row("examples", fmt.Sprint(m.Examples))
	auc := Metric(m.AUC, 6)
	if !m.AUCExact {
		auc += " (streaming)"
	}
	row("AUC", auc)
	row("log loss", Metric(m.LogLoss, 6))
	row("normalized entropy", Metric(m.NormalizedEntropy, 6))
	row("calibration (COPC)", Metric(m.COPC, 4))
	if m.GroupsUsed > 0 {
		row("group AUC", fmt.Sprintf("%s over %d groups", Metric(m.GroupAUC, 6), m.GroupsUsed))
	}
	row("base rate", Metric(m.BaseRate, 6))
	if text := precisionText(e.Precision); text != "" {
		row("computed", text)
	}
	row("rows read", readingText(e.Rows))
	row("model", e.ModelDir+"  "+e.Digest[:min(16, len(e.Digest))])
	return t.Flush()
}

// PrintPrediction prints what predict reports.
func PrintPrediction(w io.Writer, p *inference.Prediction) error {
	_, err := fmt.Fprintf(w, "%s, mean %.5f, written to %s\n", humanize.Count(p.Examples, "prediction"), p.Mean, p.Output)
	if p.Unscored > 0 || len(p.Rows.Lost) > 0 {
		_, err = fmt.Fprintf(w, "predict wrote %s without a prediction; input rows: %s\n", humanize.Count(p.Unscored, "bad or lost row"), readingText(p.Rows))
	}
	return err
}

// DayText prints the day of a row or a model: a date if the job had one, and otherwise
// the number of the run.
func DayText(day uint32, fromDate bool) string {
	if fromDate {
		return time.Unix(int64(day)*24*60*60, 0).UTC().Format(time.DateOnly)
	}
	return fmt.Sprintf("run %d", day)
}
