package modeltable

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/decay"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
)

// SavedJob returns the job that is saved with a model, with the given changes, and the job's
// schema.
func SavedJob(saved *modeldir.Model, change configs.LoadOptions) (*configs.Job, reader.Schema, error) {
	job, err := saved.ParseJob(change)
	if err != nil {
		return nil, reader.Schema{}, err
	}
	schema, err := jobparts.Schema(job)
	if err != nil {
		return nil, schema, err
	}
	var st reader.Statistics
	if err := json.Unmarshal(saved.Statistics, &st); err != nil {
		return nil, schema, &modeldir.CorruptionError{File: filepath.Join(saved.Dir, "statistics.json"), Offset: -1, Reason: err.Error()}
	}
	if err := st.Apply(&schema); err != nil {
		return nil, schema, fmt.Errorf("model in %s: %w", saved.Name, err)
	}
	return job, schema, nil
}

// RowDecay returns how the rows of a model decay; nil if they do not.
func RowDecay(saved *modeldir.Model) (*decay.Timeline, error) {
	t, err := saved.RowDecay.Timeline()
	if err != nil {
		return nil, &modeldir.CorruptionError{File: filepath.Join(saved.Dir, modeldir.ManifestName), Offset: -1, Reason: err.Error()}
	}
	return t, nil
}
