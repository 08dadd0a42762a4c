package trainer

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/internal/process"
	"aibox/reader"
)

// fewSteps is a number of optimizer steps below which the weights of a dense network
// are still close to their initial values, whatever the data.
const fewSteps = 100

// warnings lists circumstances that made this run's model worse than it could be.
func warnings(r *run) []string {
	out := append(slices.Clone(r.state.Warnings), r.data.warnings()...)
	steps := r.state.Engine.Step - r.state.Engine.FirstStep
	if warmup := r.job.Optimizer.Schedule.WarmupSteps; warmup > 0 && steps <= warmup {
		out = append(out, fmt.Sprintf("training ended after %d steps, within optimizer.schedule.warmup_steps: %d; the learning rate never reached its full value", steps, warmup))
	} else if steps < fewSteps && r.job.Training.WarmStart == "" {
		out = append(out, fmt.Sprintf("the model is the result of only %s; for so few examples a smaller training.batch_size or more training.epochs will serve better", humanize.Count(steps, "optimizer step")))
	}
	if n := len(r.state.Epochs); n > 0 {
		switch e := &r.state.Epochs[n-1].Online; {
		case e.Examples > 0 && e.Positives == 0:
			out = append(out, "no training example is positive, so the model has learned nothing but that; check data.label")
		case e.Examples > 0 && e.Positives == e.WeightSum:
			out = append(out, "all training examples are positive, so the model has learned nothing but that; check data.label")
		}
		if where, e := r.state.Epochs[n-1].decisive(); e != nil && e.AUC.Defined() && e.AUC < 0.5 {
			out = append(out, fmt.Sprintf("AUC on %s is %.3f, worse than chance", where, float64(e.AUC)))
		}
	}
	return out
}

// warnOf warns of what the first examples show.
func (r *run) warnOf(l *firstLook) {
	warn := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		r.state.Warnings = append(r.state.Warnings, text)
		r.log.Warn(text)
	}
	if l.examples == firstExamples && l.positives == 0 {
		warn("none of the first %d training examples is positive; check data.label, and whether the data are sorted by it", l.examples)
	}
	for i := range r.Schema.Columns {
		c := &r.Schema.Columns[i]
		at := slices.Index(r.Spec.Dense, c.Name)
		if c.Role == reader.RoleDense && len(c.Transforms) == 0 && at >= 0 && l.largest[at] > hugeFeature {
			warn("column %s has values up to %.3g and no transform; training is likely to diverge, or to learn little: give it transform: [standardize] or [log1p]", c.Name, l.largest[at])
		}
	}
}

// warnOfAddressSpace says what a limit of the address space does to a job: Go's runtime
// then ends the program, in its own way.
func warnOfAddressSpace(log *slog.Logger) {
	if limit := process.AddressSpaceLimit(); limit > 0 {
		log.Warn("the address space is limited (ulimit -v): if it does not suffice, Go's runtime ends the program with exit code 2 and without a summary; a program needs more addresses than memory, so it is better to limit its memory, by a control group",
			"limit_bytes", limit)
	}
}

// warnChanges logs where the job of a warm start reads the data differently from the
// earlier model's job, so that the weights get other inputs than they were trained with.
func warnChanges(r *run, earlier *configs.Job) {
	warn := func(what string, before, now any) {
		r.log.Warn("warm start: the data are read in another way than for the earlier model", "what", what, "earlier", before, "now", now)
	}
	if earlier.Data.Label != r.job.Data.Label {
		warn("data.label", earlier.Data.Label, r.job.Data.Label)
	}
	columnChanges(earlier, r.job, func(column, what, before, now string) { warn("data.columns."+column+"."+what, before, now) })
}

// columnChanges calls changed for what is not the same about the columns that both jobs have.
func columnChanges(earlier, job *configs.Job, changed func(column, what, before, now string)) {
	for _, now := range job.Data.Columns {
		i := slices.IndexFunc(earlier.Data.Columns, func(c configs.Column) bool { return c.Name == now.Name })
		if i < 0 {
			continue
		}
		before := earlier.Data.Columns[i]
		// The values are compared as text, so that pointers compare by what they point
		// at.
		for _, f := range []struct {
			name        string
			before, now string
		}{
			{"role", before.Role, now.Role},
			{"pooling", cmp.Or(before.Pooling, earlier.Model.Pooling), cmp.Or(now.Pooling, job.Model.Pooling)},
			{"space", cmp.Or(before.Space, before.Name), cmp.Or(now.Space, now.Name)},
			{"transform", transformText(before.Transform), transformText(now.Transform)},
			{"missing", missingText(before.Missing), missingText(now.Missing)},
			{"separator", before.Separator + " " + before.WeightSeparator, now.Separator + " " + now.WeightSeparator},
		} {
			if f.before != f.now {
				changed(now.Name, f.name, f.before, f.now)
			}
		}
	}
}

// warnNetwork logs where the network of a warm start computes something else with the earlier model's weights.
func warnNetwork(r *run, earlier *configs.Job) {
	before, now := &earlier.Model, &r.job.Model
	if before.Kind != now.Kind {
		return
	}
	for _, x := range []struct{ key, before, now string }{
		{"model.activation", before.Activation, now.Activation},
		{"model.embedding_activation", cmp.Or(before.EmbeddingActivation, before.Activation), now.EmbeddingActivation},
	} {
		if x.before != x.now && x.now != "" {
			r.log.Warn("warm start: the earlier model's weights were trained with another activation function; it should stay what it was",
				"key", x.key, "earlier", x.before, "now", x.now)
		}
	}
	for _, x := range []struct {
		key         string
		before, now any
	}{
		{"model.batch_norm", before.BatchNorm, now.BatchNorm},
		{"model.structure", before.Structure, now.Structure},
	} {
		if x.before != x.now {
			r.log.Warn("warm start: the earlier model's weights, which are taken over, were trained with other inputs or outputs of their layers; the setting should stay what it was",
				"key", x.key, "earlier", x.before, "now", x.now)
		}
	}
}

func transformText(steps []configs.Transform) string {
	text := ""
	for _, s := range steps {
		text += fmt.Sprintf("%s(mean %s, std %s, min %s, max %s, boundaries %v) ", s.Kind,
			numberText(s.Mean), numberText(s.Std), numberText(s.Min), numberText(s.Max), s.Boundaries)
	}
	return text
}

// missingText is the value of a missing cell. An indicator, which is a feature of its own,
// leaves it 0.
func missingText(missing configs.NumberOrWord) string {
	if missing == configs.MissingIndicator {
		return "0"
	}
	return string(missing)
}

func numberText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
