package runstate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/chain"
	"aibox/trainer/dataset"
	"aibox/trainer/modeldir"
)

// Identity is what must be the same in a process that resumes a run.
type Identity struct {
	Job   string       `json:"job"`             // the effective job file
	Night string       `json:"night,omitempty"` // the job's date, as in the manifest of its model
	Start *chain.Start `json:"started_from,omitempty"`
	dataset.Files
	Statistics *reader.Statistics `json:"statistics"` // this and Split are computed by the run that began, and not compared
	Split      *reader.Split      `json:"split,omitempty"`
}

// IdentityOf returns the identity of a run of a job that starts from a model, nil for a new one.
func IdentityOf(job *configs.Job, start *chain.Start, data *dataset.Data) (*Identity, error) {
	var text bytes.Buffer
	if err := job.Show(&text); err != nil {
		return nil, err
	}
	return &Identity{Job: text.String(), Night: job.Night(), Start: start, Files: data.Files, Statistics: data.Statistics, Split: data.Split}, nil
}

// Key is the same for runs that can resume from one another's snapshots.
func (id *Identity) Key() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(id.Job+"\n"+id.Night)))
}

// Differences returns why a run of a job whose models are those of c cannot resume the run with
// this identity. The start of the new run is not known yet.
func (id *Identity) Differences(job *configs.Job, c *chain.Chain, files dataset.Files) (reasons []string, err error) {
	earlier, err := configs.Parse("the interrupted job", []byte(id.Job), configs.LoadOptions{Saved: true})
	if err != nil { // a key was renamed or removed since
		return []string{err.Error()}, nil
	}
	if reasons, err = jobDifferences(job, earlier); err != nil {
		return nil, err
	}
	if night := job.Night(); night != id.Night {
		reasons = append(reasons, fmt.Sprintf("the job's date (%s, was %s)", cmp.Or(night, "none"), cmp.Or(id.Night, "none")))
	}
	if id.Start == nil && job.Training.WarmStart == configs.WarmStartLatest && job.Output.Remote != earlier.Output.Remote {
		reasons = append(reasons, "output.remote") // output.remote may have a model to start from
	}
	if len(reasons) > 0 {
		return reasons, nil // differences of the data follow from these
	}
	if reason := c.OtherStart(id.Start); reason != "" {
		reasons = append(reasons, reason)
	}
	return append(reasons, files.Differences(id.Files)...), nil
}

// DifferencesFrom returns how a run of a job differs from the one that made a model.
func DifferencesFrom(m *modeldir.Model, job *configs.Job, files dataset.Files) ([]string, error) {
	if now, before := job.Night(), m.OfNight(); now != before {
		return []string{fmt.Sprintf("the night, which is %s there", before)}, nil
	}
	earlier, err := m.ParseJob(configs.LoadOptions{})
	if err != nil { // a key was renamed or removed since
		return []string{err.Error()}, nil
	}
	reasons, err := jobDifferences(job, earlier)
	if err == nil && len(reasons) == 0 && m.Inputs != files.Hash() {
		reasons = append(reasons, "the files of data.train or data.eval")
	}
	return reasons, err
}

// jobDifferences returns the keys in which a job differs from an earlier one, except for those that
// do not affect the model.
func jobDifferences(job, earlier *configs.Job) ([]string, error) {
	keys, err := job.Differences(earlier)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, mayDiffer)
	if len(job.Engine.Devices) == len(earlier.Engine.Devices) { // a model depends on how many there are
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "engine.devices" })
	}
	return keys, nil
}

// mayDiffer reports whether a run can be resumed with a different value of this key of the job
// file: neither what was saved nor the model or the reports depend on it.
func mayDiffer(key string) bool {
	switch key {
	case "pipeline.batches_per_pass", "pipeline.chunk_bytes": // they determine where a reading can start
		return false
	case "engine.embeddings", "training.accept_diverged",
		"output.remote", "output.keep_generations", "output.remote_keep_generations", "output.remote_bytes_per_second",
		"sparse_table.memory_bytes", "sparse_table.dirs", "sparse_table.dir_budget_bytes", "sparse_table.max_space_amplification", "sparse_table.hot_bytes",
		"sparse_table.cache_policy", "sparse_table.lookahead_passes", "sparse_table.direct_io", "sparse_table.queue_depth":
		return true
	}
	return slices.ContainsFunc([]string{"snapshots.", "recovery.", "pipeline.", "data.hdfs."}, func(section string) bool { return strings.HasPrefix(key, section) })
}
