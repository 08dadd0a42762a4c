package transfer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"aibox/internal/disk"
	"aibox/internal/filelock"
	"aibox/trainer/remote"
)

// ReportName is the name of the file with a Report in a model directory.
const ReportName = "remote.json"

// Report says whether the last model that a run has made in a model directory was published, and
// which remote directories have its models.
type Report struct {
	Remote     string            `json:"remote,omitempty"`     // output.remote of the run; "" if it had none
	Generation int               `json:"generation,omitempty"` // of the model directory
	Published  *remote.Published `json:"published,omitempty"`
	Error      string            `json:"error,omitempty"`
	At         string            `json:"at,omitempty"` // in UTC, as in RFC 3339
	// Known are the remote directories to which a model of the model directory was published, or
	// was about to be, or from which one was restored.
	Known []string `json:"known,omitempty"`
}

// UpdateReport changes the report in a model directory by a function that reports whether it
// changed anything. If there is no report, or it is damaged, it starts empty. Publishing does not
// hold the lock of the model directory, so UpdateReport locks the directory itself.
func UpdateReport(dir string, change func(*Report) bool) error {
	if lock, err := filelock.Wait(dir, os.O_RDONLY, 0); err == nil { // else its file system has no locks
		defer func() { _ = lock.Close() }() // nothing was written
	}
	r, err := readReport(dir)
	if err != nil { // otherwise its contents would be lost
		return err
	}
	if !change(&r) {
		return nil
	}
	data, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, ReportName), append(data, '\n'))
}

func readReport(dir string) (r Report, err error) {
	data, err := disk.ReadFile(filepath.Join(dir, ReportName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if json.Unmarshal(data, &r) != nil {
		r = Report{}
	}
	return r, err
}
