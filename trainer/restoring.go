package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// RestoreOptions say what Restore does.
type RestoreOptions struct {
	From           string   // URI of a remote directory, or of one of its generations, as URI@N
	Job            string   // only generations of the job of this name; "": of the only one
	To             string   // model directory
	Dirs           []string // for the table; nil: it is in the model directory
	BytesPerSecond int64    // 0: no limit
	HDFS           configs.HDFS
	Options

	// accept chooses among the generations; nil: all of them.
	accept func(*modeldir.Manifest) bool
	// beside says that To may have models.
	beside bool
	// buckets says when the bucket files of the table are fetched.
	buckets bucketTime
	// published is called, by tests, when the model is published and files may lack bytes.
	published func()
	// survivors are files that need not be fetched if they have the right bytes, by their
	// names in a generation.
	survivors map[string]string
}

// bucketTime is when the bucket files of a table are fetched, which are most of a model.
type bucketTime int

const (
	bucketsAfter  bucketTime = iota // after the model is published, before Restore returns
	bucketsBefore                   // before the model is published
	bucketsLater                    // by the caller: see modeldir.Arriving
)

// Restored says what Restore did.
type Restored struct {
	ModelDir      string  `json:"model_dir"`
	Generation    int     `json:"generation"`
	Job           string  `json:"job"`
	Night         string  `json:"night,omitempty"`
	UsableSeconds float64 `json:"usable_seconds"` // that it took until the model was published; 0: an earlier call has done it
	remote.Fetched
}

// Restore brings a generation of a remote directory into a model directory without a
// model, which need not exist. The model is published as soon as everything but the bucket files
// of its table is there; Restore returns when these are, too, and verified. If the newest
// generation is damaged, it takes the newest older one that is whole, unless the name says
// which one it is to be: also if that is found out when it is published, which is taken back then.
// After an interruption, another call with the same options goes on where it ended.
func Restore(ctx context.Context, o RestoreOptions) (out *Restored, err error) {
	o.ensureDefaults()
	sources := NewSources(&configs.Job{Data: configs.Data{HDFS: o.HDFS}}, o.Logger)
	defer func() { err = errors.Join(err, sources.Close()) }()
	if out, err := o.goOn(ctx, sources); out != nil || err != nil {
		return out, err
	}
	return restoreFrom(ctx, sources, o)
}

func restoreFrom(ctx context.Context, sources *source.Sources, o RestoreOptions) (*Restored, error) {
	uri, number := remote.SplitURI(o.From)
	d, err := openRemoteToRead(sources, uri, o.BytesPerSecond, "restoring", o.Logger)
	if err != nil {
		return nil, err
	}
	for {
		all, faults, err := d.Generations(ctx)
		if err != nil {
			return nil, err
		}
		for _, fault := range faults {
			o.Logger.Warn("a generation of the remote directory cannot be read", "remote", uri, "error", fault)
		}
		candidates, err := choose(uri, number, &o, all)
		if err != nil {
			return nil, errors.Join(append([]error{err}, faults...)...)
		}
		out, err := restoreNewest(ctx, sources, d, candidates, &o)
		if err == nil || !deletedMeanwhile(ctx, d, candidates, err) {
			return out, err
		}
		o.Logger.Info("the generation was deleted while it was restored; a newer one is taken", "remote", uri)
	}
}

// choose returns the generations that may be restored, the best first.
func choose(uri string, number int, o *RestoreOptions, all []*remote.Manifest) ([]*remote.Manifest, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("remote directory %s: %w: it has no generation", uri, remote.ErrNone)
	}
	var jobs, numbers []string
	var out []*remote.Manifest
	for _, m := range all {
		if o.Job != "" && m.Job != o.Job {
			continue
		}
		numbers = append(numbers, fmt.Sprint(m.Number))
		if number != 0 && m.Number != number {
			continue
		}
		if o.accept != nil {
			var model modeldir.Manifest
			if err := json.Unmarshal(m.Model, &model); err != nil || !o.accept(&model) {
				continue
			}
		}
		if !slices.Contains(jobs, m.Job) {
			jobs = append(jobs, m.Job)
		}
		out = append(out, m)
	}
	switch {
	case len(out) == 0 && number != 0 && len(numbers) > 0:
		slices.Reverse(numbers)
		return nil, fmt.Errorf("remote directory %s: %w: it has no generation %d; it has %s", uri, remote.ErrNone, number, strings.Join(numbers, ", "))
	case len(out) == 0 && o.accept != nil && len(numbers) > 0:
		return nil, fmt.Errorf("remote directory %s: %w of an earlier night", uri, remote.ErrNone)
	case len(out) == 0:
		return nil, fmt.Errorf("remote directory %s: %w: it has none of the job %q", uri, remote.ErrNone, o.Job)
	case len(jobs) > 1:
		return nil, optionErrorf("remote directory %s holds the models of several jobs; name one of them: %s", uri, strings.Join(jobs, ", "))
	}
	return out, nil
}

// deletedMeanwhile reports whether another process has deleted one of the generations, so
// that it could not be restored.
func deletedMeanwhile(ctx context.Context, d *remote.Directory, candidates []*remote.Manifest, err error) bool {
	var damaged *remote.DamagedError
	if !errors.As(err, &damaged) {
		return false
	}
	now, _, err := d.Generations(ctx)
	return err == nil && !slices.ContainsFunc(now, func(m *remote.Manifest) bool { return m.ID == candidates[0].ID })
}

// restoreNewest restores the first of the generations that is whole.
func restoreNewest(ctx context.Context, sources *source.Sources, d *remote.Directory, candidates []*remote.Manifest, o *RestoreOptions) (*Restored, error) {
	var faults []error
	_, number := remote.SplitURI(o.From)
	for i, m := range candidates {
		out, err := restoreOne(ctx, sources, d, m, o)
		if err == nil {
			out.Older = i
			return out, nil
		}
		var damaged *remote.DamagedError
		if !errors.As(err, &damaged) || ctx.Err() != nil {
			return nil, err
		}
		faults = append(faults, err)
		if number != 0 {
			break
		}
		if i+1 < len(candidates) {
			o.Logger.Error("a generation of the remote directory is damaged; the newest older one is taken: what was trained since is lost", "remote", d.URI(), "generation", m.Number, "instead", candidates[i+1].Number, "error", err)
		}
	}
	return nil, errors.Join(faults...)
}

func restoreOne(ctx context.Context, sources *source.Sources, d *remote.Directory, m *remote.Manifest, o *RestoreOptions) (out *Restored, err error) {
	began := time.Now()
	var model modeldir.Manifest
	if err := json.Unmarshal(m.Model, &model); err != nil {
		return nil, &remote.DamagedError{URI: fmt.Sprintf("%s@%d", d.URI(), m.Number), Reason: err.Error()}
	}
	if model.FormatVersion > modeldir.FormatVersion {
		return nil, fmt.Errorf("%s@%d has format %d, written by aibox %s; %w", d.URI(), m.Number, model.FormatVersion, model.AiboxVersion, modeldir.ErrNewer)
	}
	if err := d.Whole(ctx, m); err != nil { // before anything is fetched
		return nil, err
	}
	names, sizes := make([]string, len(m.Files)), make([]int64, len(m.Files))
	for i, f := range m.Files {
		names[i], sizes[i] = f.Name, f.Bytes
	}
	dirs := modeldir.DirsFor(names, o.Dirs)
	r, err := o.begin(m, dirs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	o.Logger.Info("restoring a model", "from", fmt.Sprintf("%s@%d", d.URI(), m.Number), "job", m.Job, "night", model.Night, "to", o.To, "bytes", m.Bytes())
	if err := r.Place(names, sizes, o.survivors); err != nil {
		return nil, err
	}
	if _, err := adopt(ctx, m, o.survivors, r.Path, o.Logger); err != nil {
		return nil, err
	}
	first, err := o.announce(d, m, r)
	if err != nil {
		return nil, err
	}
	fetched, err := d.Fetch(ctx, first, func(f *remote.File) string { return r.Path(f.Name) })
	if err == nil {
		err = r.Commit(ctx, movedOrigin(model, m))
	}
	if err != nil {
		return nil, discardDamaged(r, err)
	}
	out = &Restored{ModelDir: o.To, Generation: r.Number(), Job: m.Job, Night: nightOf(&model), UsableSeconds: time.Since(began).Seconds(), Fetched: *fetched}
	out.Bytes = m.Bytes()
	rest := m.Bytes() - first.Bytes()
	if rest > 0 && o.buckets == bucketsAfter {
		o.Logger.Info("the model is usable; its other files are fetched now", "model", o.To, "generation", m.Number, "seconds_until_usable", out.UsableSeconds, "still_fetched", humanize.Bytes(rest))
		if o.published != nil {
			o.published()
		}
		if err := o.fetchRest(ctx, sources, r, m, out); err != nil {
			return nil, err
		}
		rest = 0
	}
	out.Seconds = time.Since(began).Seconds()
	o.logRestored(out, rest)
	return out, nil
}

func (o *RestoreOptions) logRestored(out *Restored, rest int64) {
	o.Logger.Info("the model is restored", "still_fetched", humanize.Bytes(rest), "model", o.To, "generation", out.Generation, "bytes", humanize.Bytes(out.Bytes), "fetched", humanize.Bytes(out.Moved), "seconds_until_usable", out.UsableSeconds, "seconds", out.Seconds)
}

// discardDamaged takes back what was restored, if it failed because what the remote directory has
// is damaged.
func discardDamaged(r *modeldir.Restoring, err error) error {
	var damaged *remote.DamagedError
	if errors.As(err, &damaged) {
		err = errors.Join(err, r.Discard())
	}
	return err
}

// announce announces what is fetched after the model is published, and returns what is fetched
// before.
func (o *RestoreOptions) announce(d *remote.Directory, m *remote.Manifest, r *modeldir.Restoring) (*remote.Manifest, error) {
	place := func(f *remote.File) string { return r.Path(f.Name) }
	if o.buckets == bucketsBefore {
		return m, remote.Unannounce(m, place, r.ArrivingRecords()...) // an earlier process may have done it
	}
	return announceBuckets(d, m, place, r.ArrivingRecords())
}

// announceBuckets announces the bucket files of a model or snapshot that are not yet being fetched,
// and returns what else there is.
func announceBuckets(d *remote.Directory, m *remote.Manifest, place func(*remote.File) string, records []string) (*remote.Manifest, error) {
	late := func(f *remote.File) bool { return isBucketFile(f) && !exists(place(f)+remote.PartSuffix) }
	first := *m
	first.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f remote.File) bool { return late(&f) })
	return &first, d.Announce(m, late, place, records...)
}

// begin begins to restore a generation.
func (o *RestoreOptions) begin(m *remote.Manifest, dirs []string) (*modeldir.Restoring, error) {
	if o.beside {
		return modeldir.RestoreBeside(o.To, m.ID, dirs)
	}
	return modeldir.Restore(o.To, m.Number, m.ID, dirs)
}

// movedOrigin is the manifest of a model that comes from a remote directory. In it, the
// generation from which it was made has the number that it has there; if it is not there,
// it is one of the machine where it was made.
func movedOrigin(model modeldir.Manifest, m *remote.Manifest) modeldir.Manifest {
	from := &model.StartedFrom
	switch {
	case *from == (modeldir.Origin{}) || from.ModelDir != "":
	case m.Parent != nil:
		from.Generation = fmt.Sprintf("gen-%06d", m.Parent.Number)
	case m.Number != model.Number():
		from.ModelDir = m.Owner
	}
	return model
}

// restoringTo are options that restore a model to start from out of output.remote, as a whole.
func (r *run) restoringTo(dir string) RestoreOptions {
	return RestoreOptions{
		From: r.job.Output.Remote, To: dir, Dirs: r.job.SparseTable.Dirs, BytesPerSecond: int64(r.job.Output.RemoteBytesPerSecond),
		Options: r.opts, buckets: bucketsBefore,
	}
}

// restoreLatest restores the newest model of an earlier run from output.remote, if there
// is one, where the job's chain has none on this machine. It reports whether it did.
func (r *run) restoreLatest(ctx context.Context) (bool, error) {
	uri := r.job.Output.Remote
	if uri == "" {
		return false, nil
	}
	o := r.restoringTo(r.job.Output.ModelDir)
	o.Job, o.accept, o.buckets = r.job.PlainName(), r.mayStartFrom, bucketsLater
	out, err := restoreFrom(ctx, r.data.sources, o)
	if errors.Is(err, remote.ErrNone) {
		r.log.Info("output.remote has no model of an earlier run either", "reason", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("there is no model of an earlier run on this machine, and output.remote, which may have one, cannot be read: %w", errkind.As(errkind.IO, err))
	}
	r.restored = restored{uri, out.Bytes, out.Moved, out.Again, out.Seconds}
	return true, nil
}
