package inference

import (
	"fmt"
	"slices"

	"aibox/configs"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/modeltable"
	"aibox/trainer/optim"
)

// checkOverrides fails if overrides of a model's job would make it predict nonsense without an
// error: if they define another network whose parameters have the same sizes, for example with its
// columns in another order, as in a file without a header, or without some of its layers; or if
// other rows would count. A column may have another name in the same place, as data may have in
// their header. If a column is read in another way, a warning says so.
func (l *Model) checkOverrides(change configs.LoadOptions, now model.Spec) error {
	if len(change.Set) == 0 {
		return nil
	}
	change.Set = nil
	job, schema, err := modeltable.SavedJob(l.Saved, change)
	if err != nil {
		return err
	}
	trained, err := jobparts.ModelSpec(job, &schema)
	if err != nil {
		return err
	}
	old, err := model.Outline(trained) // for the names of its columns
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		same bool
	}{
		{"model.kind", now.Kind == trained.Kind},
		{"model.activation", now.Activation == trained.Activation},
		{"model.embedding_activation", now.EmbeddingActivation == trained.EmbeddingActivation},
		{"model.structure", now.Structure == trained.Structure},
		{"model.batch_norm", now.BatchNorm == trained.BatchNorm},
		{"pooling", now.Pooling == trained.Pooling && slices.Equal(now.Poolings, trained.Poolings)},
		{"sparse_table.admission.min_occurrences", l.Job.SparseTable.Admission == job.SparseTable.Admission}, // which rows count
	} {
		if !s.same {
			return l.mismatch([]string{s.name}, fmt.Errorf("%s is not what it was trained with", s.name))
		}
	}
	for _, p := range old.Params() {
		if !slices.ContainsFunc(l.Network.Params(), func(now *optim.Param) bool { return now.Name == p.Name }) {
			return l.mismatch([]string{"model"}, fmt.Errorf("the network has no %s, but the trained model has", p.Name))
		}
	}
	jobparts.ColumnChanges(job, l.Job, func(column, what, before, now string) {
		if !slices.Contains([]string{"separator", "weight_separator", "range[0]", "field"}, what) { // other data may have different ones
			l.opts.Logger.Warn("a column is read differently from when the model was trained; unless that is intended, the model's predictions are wrong", "column", column, "what", what, "trained", before, "now", now)
		}
	})
	for _, p := range l.Network.Params() {
		for axis, names := range l.Network.Axes(p.Name) {
			if err := inPlace(old.Axes(p.Name), axis, names); err != nil {
				return l.mismatch([]string{"data.columns"}, err)
			}
		}
	}
	return nil
}

// inPlace fails if an entry of a parameter's axis had its name in another position.
func inPlace(old [][]string, axis int, names []string) error {
	if axis >= len(old) {
		return nil
	}
	at := make(map[string]int, len(old[axis]))
	for i, name := range old[axis] {
		at[name] = i
	}
	for i, name := range names {
		if was, ok := at[name]; ok && was != i {
			return fmt.Errorf("the network has %s in place %d, but was trained with it in place %d: list the columns in the order of the job that it was trained with, and bring data without a header into that order", name, i+1, was+1)
		}
	}
	return nil
}
