package takeover

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
)

// Takeover takes the values of an earlier model over into the model of a run.
type Takeover struct {
	Job   *configs.Job // of the run, as are the next five fields
	Parts *jobparts.Parts
	Model *model.Model
	State *engine.State
	Log   *slog.Logger
	Day   uint32 // of the run

	Saved   *modeldir.Model // the earlier model, as are the next three fields
	earlier *configs.Job
	old     *model.Model
	oldSpec model.Spec
}

// Begin reads the earlier model's job, and logs where this job differs.
func (t *Takeover) Begin() error {
	earlier, schema, err := earlierJob(t.Saved)
	if err != nil {
		return err
	}
	spec, err := jobparts.ModelSpec(earlier, &schema)
	if err != nil {
		return fmt.Errorf("model of the earlier model directory: %w", err)
	}
	old, err := model.Outline(spec) // for the names of its columns
	if err != nil {
		return err
	}
	t.earlier, t.old, t.oldSpec = earlier, old, spec
	t.warnChanges()
	t.warnNetwork()
	if err := t.warnDefaults(); err != nil {
		return err
	}
	if before, now := earlier.Engine.Precision, t.Job.Engine.Precision; before != now {
		t.Log.Info("warm start: matrix products are computed in another precision", "earlier", before, "now", now)
	}
	return nil
}

// Earlier returns the earlier model's job.
func (t *Takeover) Earlier() *configs.Job { return t.earlier }

// earlierJob returns the job of an earlier model, and its schema.
func earlierJob(saved *modeldir.Model) (*configs.Job, reader.Schema, error) {
	var schema reader.Schema
	job, err := saved.ParseJob(configs.LoadOptions{})
	if err == nil {
		schema, err = jobparts.Schema(job)
	}
	if err != nil {
		return nil, schema, fmt.Errorf("job file of the earlier model: %w", err)
	}
	return job, schema, nil
}

// warnChanges logs where the job of a warm start reads the data differently from the earlier
// model's job, so that the weights get other inputs than those they were trained with.
func (t *Takeover) warnChanges() {
	earlier := t.earlier
	warn := func(what string, before, now any) {
		t.Log.Warn("warm start: the data are read in another way than for the earlier model", "what", what, "earlier", before, "now", now)
	}
	if earlier.Data.Label != t.Job.Data.Label {
		warn("data.label", earlier.Data.Label, t.Job.Data.Label)
	}
	if before, now := &earlier.Data, &t.Job.Data; before.Format == now.Format {
		if before.Quoting != now.Quoting {
			warn("data.quoting", before.Quoting, now.Quoting)
		}
		if before, now := nulls(before), nulls(now); !slices.Equal(before, now) {
			warn("data.null_values", before, now)
		}
	}
	jobparts.ColumnChanges(earlier, t.Job, func(column, what, before, now string) { warn("data.columns."+column+"."+what, before, now) })
}

// warnDefaults logs where the network and the optimizers use defaults that differ from the values
// of the earlier model's job, for example because a newer version of aibox has other defaults. Keys
// that came with another kind of network or optimizer have no earlier values.
func (t *Takeover) warnDefaults() error {
	keys, err := t.Job.Changes(t.earlier)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return t.Job.Given(key) || !strings.HasPrefix(key, "model.") && !strings.HasPrefix(key, "optimizer.")
	})
	if len(keys) > 0 {
		t.Log.Warn("warm start: the earlier model was trained with other values than the defaults that this job takes; if these are to stay, write them into the job file",
			"keys", strings.Join(keys, ", "), "earlier_job", filepath.Join(t.Saved.Dir, t.Saved.Generation, "job.yaml"))
	}
	return nil
}

// nulls returns the texts that mean a missing value, except for the empty one, in order.
func nulls(d *configs.Data) []string {
	texts := slices.DeleteFunc(slices.Clone(d.NullValues), func(text string) bool { return text == "" })
	slices.Sort(texts)
	return slices.Compact(texts)
}

// warnNetwork logs where the network of a warm start computes something different with the earlier
// model's weights.
func (t *Takeover) warnNetwork() {
	earlier := t.earlier
	before, now := &earlier.Model, &t.Job.Model
	if before.Kind != now.Kind {
		return
	}
	for _, x := range []struct{ key, before, now string }{
		{"model.activation", before.Activation, now.Activation},
		{"model.embedding_activation", cmp.Or(before.EmbeddingActivation, before.Activation), now.EmbeddingActivation},
	} {
		if x.before != x.now && x.now != "" {
			t.Log.Warn("warm start: the earlier model's weights were trained with another activation function; it should stay what it was",
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
			t.Log.Warn("warm start: the earlier model's weights, which are taken over, were trained with other inputs or outputs of their layers; the setting should stay what it was",
				"key", x.key, "earlier", x.before, "now", x.now)
		}
	}
}
