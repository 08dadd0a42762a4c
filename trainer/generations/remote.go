package generations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"aibox/configs"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
	"aibox/trainer/transfer"
)

// Remote is what `aibox generations` prints about a generation of a remote directory, a snapshot of
// a run there, or rows that were saved by priority.
type Remote struct {
	Generation  int    `json:"generation,omitempty"` // 0 for a snapshot, from which `aibox train` resumes, or rows
	State       State  `json:"state"`                // Published, Resumable (a snapshot) or PriorityRows
	Run         string `json:"run,omitempty"`        // of a snapshot or rows; the same for all those of a run
	Job         string `json:"job"`
	Owner       string `json:"owner"` // the machine and the model directory that it comes from
	Night       string `json:"night,omitempty"`
	SavedAt     string `json:"saved_at,omitempty"`     // in UTC
	PublishedAt string `json:"published_at"`           // in UTC
	StartedFrom string `json:"started_from,omitempty"` // the generation that it was made from; "" for a new model
	Steps       int64  `json:"steps"`
	Rows        int64  `json:"rows,omitempty"` // of PriorityRows
	Digest      string `json:"digest,omitempty"`
	Bytes       int64  `json:"bytes"`     // size of its files, including shared ones
	OwnBytes    int64  `json:"own_bytes"` // size of its files that no other generation shares
	// Damaged says that VerifyRemote has found files of it missing, damaged or unreadable.
	Damaged bool `json:"damaged,omitempty"`

	id string // of its manifest
}

// ListRemote describes the generations of a remote directory, the newest first, and then the
// snapshots and the rows that were saved by priority. total is the number of bytes that they take
// together. The job says how to reach HDFS.
func ListRemote(ctx context.Context, job *configs.Job, uri string, log *slog.Logger) (out []Remote, total int64, err error) {
	sources := jobsource.New(job, log)
	defer func() { err = errors.Join(err, sources.Close()) }()
	d, err := transfer.OpenExisting(ctx, sources, uri, "", log)
	if err != nil {
		return nil, 0, err
	}
	all, faults, err := d.All(ctx)
	if err != nil {
		return nil, 0, err
	}
	out, total = describeRemote(uri, all, log)
	warnOf(uri, faults, log)
	return out, total, nil
}

func warnOf(uri string, faults []error, log *slog.Logger) {
	for _, fault := range faults {
		log.Warn("a generation, a snapshot or saved rows of the remote directory cannot be read", "remote", uri, "error", fault)
	}
}

// describeRemote describes manifests of a remote directory, and logs which ones this program cannot
// read.
func describeRemote(uri string, all []*remote.Manifest, log *slog.Logger) (out []Remote, total int64) {
	own, total := remote.OwnBytes(all)
	out = []Remote{}
	for i, m := range all {
		describe := describePublished
		switch m.Kind() {
		case remote.Snapshot:
			describe = describeSnapshot
		case remote.PrioritySave:
			describe = describePriorityRows
		}
		g, err := describe(m)
		if err != nil {
			warnOf(uri, []error{fmt.Errorf("number %d of %s: %w", m.Number, uri, err)}, log)
			continue
		}
		g.Job, g.Owner, g.PublishedAt, g.Bytes, g.OwnBytes = m.Job, m.Owner, m.PublishedAt, m.Bytes(), own[i]
		g.Run, g.id = m.Run, m.ID
		out = append(out, g)
	}
	return out, total
}

func describePublished(m *remote.Manifest) (g Remote, err error) {
	var model modeldir.Manifest
	if err := json.Unmarshal(m.Model, &model); err != nil {
		return g, err
	}
	g = Remote{Generation: m.Number, State: Published, Night: model.OfNight(), SavedAt: model.SavedAt, Steps: model.Step, Digest: model.Digest}
	if model.StartedFrom != (modeldir.Origin{}) {
		moved := transfer.MovedOrigin(model, m).StartedFrom
		from := modeldir.Manifest{Generation: moved.Generation}
		if g.StartedFrom = fmt.Sprint(from.Number()); moved.ModelDir != "" {
			g.StartedFrom = modeldir.JoinName(moved.ModelDir, from.Number())
		}
	}
	return g, nil
}

func describeSnapshot(m *remote.Manifest) (g Remote, err error) {
	x, id, err := runstate.Decode(m.Model)
	g = Remote{State: Resumable, Night: id.Night, SavedAt: m.PublishedAt, Steps: x.Step}
	if id.Start != nil {
		g.StartedFrom = id.Start.Name
	}
	return g, err
}

func describePriorityRows(m *remote.Manifest) (g Remote, err error) {
	var s runstate.PrioritySave
	if err := json.Unmarshal(m.Model, &s); err != nil {
		return g, err
	}
	if g, err = describeSnapshot(m); err != nil {
		return g, err
	}
	g.State, g.Rows = PriorityRows, s.Rows
	return g, nil
}
