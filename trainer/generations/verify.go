package generations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/trainer/jobsource"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// Verified is what `aibox inspect` prints about a remote directory.
type Verified struct {
	Remote      string   `json:"remote"`
	Generations []Remote `json:"generations"` // as ListRemote returns them
	TotalBytes  int64    `json:"total_bytes"` // that the generations take there
	Files       int      `json:"files"`       // files of the remote directory that were verified
	Faults      []Fault  `json:"faults"`
}

// Fault is a file of a remote directory that is missing, damaged or cannot be read.
type Fault struct {
	URI    string `json:"uri"`
	Reason string `json:"reason"`
	// NeededBy are the files of models and snapshots that it contains; nil for a manifest.
	NeededBy []NeededBy `json:"needed_by,omitempty"`

	newer error // set if a newer version of aibox has written it
}

// NeededBy is a file of a model, or of a run's uploads.
type NeededBy struct {
	Generation int    `json:"generation,omitempty"` // 0 if it belongs to a run
	Run        string `json:"run,omitempty"`
	Steps      int64  `json:"steps,omitempty"` // of the run
	File       string `json:"file"`
}

// VerifyRemote reads every file of a remote directory or, if number is not 0, of that generation,
// and reports what is wrong. The job says how to reach HDFS.
func VerifyRemote(ctx context.Context, job *configs.Job, uri string, number int, log *slog.Logger) (out *Verified, err error) {
	sources := jobsource.New(job, log)
	defer func() { err = errors.Join(err, sources.Close()) }()
	d, err := transfer.OpenExisting(ctx, sources, uri, "verifying", log)
	if err != nil {
		return nil, err
	}
	v, err := d.Verify(ctx, number)
	if err != nil {
		return nil, err
	}
	out = &Verified{Remote: d.URI(), Files: v.Objects, Faults: []Fault{}}
	out.Generations, out.TotalBytes = describeRemote(uri, v.All, log)
	for _, err := range v.Manifests {
		f := faultOf(d.URI(), err)
		if errors.Is(err, errkind.ErrNewer) {
			f.newer = err
		}
		out.Faults = append(out.Faults, f)
	}
	for _, bad := range v.Faults {
		f := faultOf(bad.URI, bad.Err)
		for _, of := range bad.Of {
			need := NeededBy{Run: of.Run, Steps: of.Step, File: of.File}
			if of.Kind() == remote.Generation {
				need.Generation = of.Number
			}
			f.NeededBy = append(f.NeededBy, need)
			if i := slices.IndexFunc(out.Generations, func(g Remote) bool { return g.id == of.ID }); i >= 0 {
				out.Generations[i].Damaged = true
			}
		}
		out.Faults = append(out.Faults, f)
	}
	if number != 0 {
		out.Generations = slices.DeleteFunc(out.Generations, func(g Remote) bool { return g.Generation != number })
		out.TotalBytes = v.Bytes
	}
	return out, nil
}

func faultOf(uri string, err error) Fault {
	var damaged *remote.DamagedError
	if errors.As(err, &damaged) {
		return Fault{URI: damaged.URI, Reason: damaged.Reason}
	}
	var newer *remote.NewerError
	if errors.As(err, &newer) {
		uri = newer.URI
	}
	return Fault{URI: uri, Reason: err.Error()}
}

func (f *Fault) String() string {
	text, join := f.URI+": "+f.Reason, "; needed as"
	for _, n := range f.NeededBy {
		of := fmt.Sprintf("generation %d", n.Generation)
		if n.Generation == 0 {
			of = fmt.Sprintf("what the run %s has saved at step %d", n.Run, n.Steps)
		}
		text += fmt.Sprintf("%s %s of %s", join, n.File, of)
		join = ","
	}
	return text
}

// Err returns the error that a command ends with; nil if there are no faults.
func (v *Verified) Err() error {
	var newer []error
	for _, f := range v.Faults {
		if f.newer != nil {
			newer = append(newer, f.newer)
		}
	}
	if len(newer) == len(v.Faults) {
		return errors.Join(newer...)
	}
	var numbers []string
	for _, g := range v.Generations {
		if g.Damaged && g.Generation != 0 {
			numbers = append(numbers, fmt.Sprint(g.Generation))
		}
	}
	slices.Reverse(numbers)
	are := "are"
	if len(v.Faults) == 1 {
		are = "is"
	}
	text := fmt.Sprintf("%s: %s %s missing, damaged or unreadable", v.Remote, humanize.Count(int64(len(v.Faults)), "file"), are)
	if len(numbers) > 0 {
		text += "\nModels that have such files: " + strings.Join(numbers, ", ") + ". `aibox publish --verify` repairs one from the model directory that has it."
	}
	return errkind.New(errkind.IO, text)
}
