package modeldir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/trainer/decay"
	"aibox/trainer/modeldir/internal/faults"
)

// FormatVersion is the version of the directory's layout and of its files, except for those of the
// table, which have versions of their own. A directory of a newer version is refused, with the
// advice to use a newer aibox.
const FormatVersion = 1

const (
	ManifestName = "MODEL.json"
	lockName     = "LOCK"
)

// Manifest is MODEL.json: the files that make up the model, and how far training had got when they
// were saved.
type Manifest struct {
	FormatVersion int    `json:"format_version"`
	AiboxVersion  string `json:"aibox_version"`
	Generation    string `json:"generation"`   // directory of the files named below
	ID            string `json:"id,omitempty"` // random; "" if an earlier version saved the model

	JobSHA256        string `json:"job_sha256"`        // of job.yaml
	StatisticsSHA256 string `json:"statistics_sha256"` // of statistics.json

	Dense         string `json:"dense"`          // dense file
	TableSnapshot uint64 `json:"table_snapshot"` // snapshot of the generation's table

	Epoch    int   `json:"epoch"`    // 1-based; the epoch that was kept
	Step     int64 `json:"step"`     // optimizer steps, including those of earlier models
	Examples int64 `json:"examples"` // trained by this run when the model was saved

	Day         uint32  `json:"day"`           // the job's day, which is lastSeen of rows trained in this run
	DayFromDate bool    `json:"day_from_date"` // Day is the job's date in days since 1970; otherwise it counts runs
	KeptShare   float64 `json:"kept_share"`    // share of negatives that training kept; predictions are calibrated for it

	RowDecay decay.Record `json:"row_decay,omitempty"` // weight decay of rows since the first step; "" if they do not decay

	SavedAt     string `json:"saved_at,omitempty"`    // in UTC, as in RFC 3339; "" if an earlier version saved the model
	Job         string `json:"job,omitempty"`         // its name without dates; "" if an earlier version saved the model
	Night       string `json:"night,omitempty"`       // the job's date, with the hour if the job depends on it; "" if the job has none
	NightDir    bool   `json:"night_dir,omitempty"`   // the job's output.model_dir had a date in it, so models of other nights may be in other directories
	TrainData   string `json:"train_data,omitempty"`  // SHA-256 of the URIs of the training data
	Inputs      string `json:"inputs,omitempty"`      // SHA-256 of the names, lengths and times of the training and evaluation files; "" if an earlier version saved the model
	StartedFrom Origin `json:"started_from,omitzero"` // the earlier model; zero if training began with a new one

	// PartialRecovery is zero if the model is that of an undisturbed run.
	PartialRecovery PartialRecovery `json:"partial_recovery,omitzero"`

	// Digest is the result of the function Digest. It is empty if the table is on SSD, since
	// computing it would need to read the whole table; `aibox inspect --digest` does that.
	Digest string `json:"digest,omitempty"`
}

// PartialRecovery says what a run has lost that continued after its table had lost a directory,
// while only the rows of that directory went back.
type PartialRecovery struct {
	Recoveries  int     `json:"recoveries,omitempty"`
	LostSamples float64 `json:"lost_samples,omitempty"` // portion of lost samples (PLS)
	RowsAnew    int64   `json:"rows_anew,omitempty"`    // rows that were lost and began as new ones
	Inherited   bool    `json:"inherited,omitempty"`    // the model that it was made from was partially recovered, too
}

// Origin identifies the model that training started from.
type Origin struct {
	ModelDir   string `json:"model_dir,omitempty"` // absolute; "" for the same directory
	Generation string `json:"generation,omitempty"`
	Identity   string `json:"identity,omitempty"` // Manifest.Identity; "" if an earlier version saved the model
}

// Name returns the name, as DIR@N, of the model from which one in dir was made; "" if that began as
// a new one.
func (o Origin) Name(dir string) string {
	if o == (Origin{}) {
		return ""
	}
	m := Manifest{Generation: o.Generation}
	return JoinName(cmp.Or(o.ModelDir, dir), m.Number())
}

// TableRecord returns the record of the table's snapshot, which ties it to the dense file of the
// same instant.
func (m *Manifest) TableRecord() []byte {
	b, err := json.Marshal(struct {
		Step  int64  `json:"step"`
		Dense string `json:"dense"`
	}{m.Step, m.Dense})
	if err != nil {
		panic(err) // two plain fields
	}
	return b
}

// Identity distinguishes the model from all others, wherever it is copied to.
func (m *Manifest) Identity() string {
	if m.ID != "" {
		return m.ID
	}
	// An earlier version saved the model.
	return hashOf([]byte(strings.Join([]string{m.JobSHA256, m.StatisticsSHA256, m.Digest, m.SavedAt, m.Dense, fmt.Sprint(m.Examples)}, "\n")))
}

// OfNight returns the night of the model, "" if its job had no date.
func (m *Manifest) OfNight() string {
	if m.Night == "" && m.DayFromDate { // an earlier version saved it
		return time.Unix(int64(m.Day)*secondsPerDay, 0).UTC().Format(time.DateOnly)
	}
	return m.Night
}

// LaterNight reports whether a is a later night than b. If only one of them has an hour, the days
// are compared. An empty night is not later than any, nor any later than it.
func LaterNight(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] > b[:n]
}

const secondsPerDay = 24 * 60 * 60

// ErrNoModel says that a directory has no committed model.
var ErrNoModel = errkind.New(errkind.IO, "no model here")

func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	data, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(dir); serr != nil {
			return nil, noDirectory(dir)
		}
		return nil, fmt.Errorf("model directory %s: %w: there is no %s; `aibox train` writes it when training is done", dir, ErrNoModel, ManifestName)
	}
	if err != nil {
		return nil, err
	}
	return decodeManifest(path, dir, data)
}

// noDirectory returns the error for a directory that does not exist.
func noDirectory(dir string) error {
	if strings.Contains(dir, "://") {
		return fmt.Errorf("%s: %w: a model directory must be on this machine; `aibox restore --from %s --to DIR` fetches the model to one", dir, ErrNoModel, humanize.ShellWord(dir))
	}
	return fmt.Errorf("model directory %s: %w: the directory does not exist", dir, ErrNoModel)
}

// decodeManifest decodes the manifest in data, the contents of the file at path in the model
// directory dir.
func decodeManifest(path, dir string, data []byte) (*Manifest, error) {
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(m); err != nil {
		return nil, &CorruptionError{File: path, Offset: d.InputOffset(), Reason: err.Error()}
	}
	if m.FormatVersion > FormatVersion {
		return nil, fmt.Errorf("model directory %s has format %d, written by aibox %s; %w: this binary reads up to %d", dir, m.FormatVersion, m.AiboxVersion, errkind.ErrNewer, FormatVersion)
	}
	if m.FormatVersion < 1 || m.Generation == "" || m.Generation != filepath.Base(m.Generation) ||
		m.Dense == "" || m.Dense != filepath.Base(m.Dense) {
		return nil, faults.Damaged(path, "fields are missing or out of range")
	}
	return m, nil
}
