package modeldir

import (
	"errors"
	"path/filepath"

	"aibox/configs"
	"aibox/internal/errkind"
)

// ParseJob returns the job that is saved with the model, with the given changes. Contents that this
// version of aibox does not know are not reported as a fault of a job file, since another version
// has saved it.
func (m *Model) ParseJob(change configs.LoadOptions) (*configs.Job, error) {
	change.Saved = true
	job, err := configs.Parse(filepath.Join(m.Dir, m.Generation, "job.yaml"), m.Job, change)
	var faults configs.FaultsError
	if errors.As(err, &faults) && faults.ErrorKind() == errkind.Job { // else it is about the changes
		return nil, errkind.Errorf(errkind.IO, "the model %s was saved by aibox %s, and this version does not know all keys of its job file; use that version, or a newer one: %w", m.Name, m.AiboxVersion, err)
	}
	return job, err
}
