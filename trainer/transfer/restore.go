package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	From           string   // URI of a remote directory
	Number         int      // of the generation there; 0 for the newest one
	Job            string   // only generations of the job with this name; "" for the only job
	To             string   // model directory
	Dirs           []string // for the table; nil if it is in the model directory
	BytesPerSecond int64    // 0 for no limit
	HDFS           configs.HDFS
	Options

	// Identity, if not "", selects exactly this model.
	Identity string
	// Accept, if not nil, selects among the generations.
	Accept func(*modeldir.Manifest) bool
	// Beside says that To may have models.
	Beside bool
	// Buckets says when the bucket files of the table are fetched.
	Buckets BucketTime
	// RemainingFiles are files, by their names in a generation, that need not be fetched if they have
	// the right bytes.
	RemainingFiles map[string]string
}

// BucketTime says when the bucket files of a table, which are most of a model, are fetched.
type BucketTime int

// Times to fetch bucket files.
const (
	BucketsAfter  BucketTime = iota // after the model is published, before Restore returns
	BucketsBefore                   // before the model is published
	BucketsLater                    // by the caller: see modeldir.Arriving
)

// Restored is the result of Restore.
type Restored struct {
	ModelDir      string  `json:"model_dir"`
	Generation    int     `json:"generation"`
	Job           string  `json:"job"`
	Night         string  `json:"night,omitempty"`
	Already       bool    `json:"already"`        // the model was there before
	UsableSeconds float64 `json:"usable_seconds"` // until the model was published; 0 if an earlier call has published it
	remote.Fetched
}

// Restore brings a generation of a remote directory into a model directory without a model, which
// need not exist. The model is published as soon as everything but the bucket files of its table is
// there. Restore returns when these are there, too, and verified. If the newest generation is
// damaged, Restore takes the newest complete older one, unless Number selects one. If the damage is
// found after publication, the model is withdrawn. After an interruption, another call with the
// same options continues. After success, another call finds the model there and verifies it, until
// the remote directory has a newer one.
func Restore(ctx context.Context, o RestoreOptions) (out *Restored, err error) {
	o.ensureDefaults()
	if remote.IsLocal(o.To) {
		return nil, errkind.Errorf(errkind.Usage, "%s is a remote directory, to which models are published; restore to another one", o.To)
	}
	if _, err := modeldir.Generations(o.From); err == nil {
		return nil, errkind.Errorf(errkind.Usage, "%s is a model directory, not a remote directory: commands use its model where it is, and `aibox publish` copies it to a remote directory", o.From)
	}
	sources := jobsource.New(&configs.Job{Data: configs.Data{HDFS: o.HDFS}}, o.Logger)
	defer func() { err = errors.Join(err, sources.Close()) }()
	if out, err := o.goOn(ctx, sources); out != nil || err != nil {
		return out, errors.Join(err, modeldir.RemoveDiscarded(o.To))
	}
	return RestoreWith(ctx, sources, o)
}

// RestoreWith is Restore with existing sources. It does not continue with a model that an earlier
// call has published.
func RestoreWith(ctx context.Context, sources *source.Sources, o RestoreOptions) (_ *Restored, err error) {
	o.ensureDefaults()
	defer func() { err = errors.Join(err, modeldir.RemoveDiscarded(o.To)) }()
	d, err := OpenPresent(sources, o.From, o.BytesPerSecond, "restoring", o.Logger)
	if err != nil {
		return nil, err
	}
	for {
		all, faults, err := d.Generations(ctx)
		if err != nil {
			return nil, err
		}
		for _, fault := range faults {
			o.Logger.Warn("a generation of the remote directory cannot be read", "remote", o.From, "error", fault)
		}
		candidates, err := choose(&o, all)
		if newer := o.newer(candidates, faults); newer != nil {
			return nil, newer
		}
		if err != nil {
			return nil, errors.Join(append([]error{err}, faults...)...)
		}
		out, err := restoreNewest(ctx, sources, d, candidates, &o)
		if err == nil || !deletedMeanwhile(ctx, d, candidates, err) {
			return out, err
		}
		o.Logger.Info("the generation was deleted while it was being restored; a newer one is restored instead", "remote", o.From)
	}
}

// ErrNoEarlier is a remote.ErrNone for a directory that has models of the job, but none that
// RestoreOptions.Accept accepts.
var ErrNoEarlier = fmt.Errorf("%w of an earlier night", remote.ErrNone)

// choose returns the generations that may be restored, the best first.
func choose(o *RestoreOptions, all []*remote.Manifest) ([]*remote.Manifest, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("remote directory %s: %w: it has no generation", o.From, remote.ErrNone)
	}
	var jobs, numbers []string
	var out []*remote.Manifest
	for _, m := range all {
		if o.Job != "" && m.Job != o.Job {
			continue
		}
		numbers = append(numbers, fmt.Sprint(m.Number))
		if o.Number != 0 && m.Number != o.Number {
			continue
		}
		if o.Identity != "" || o.Accept != nil {
			var model modeldir.Manifest
			if err := json.Unmarshal(m.Model, &model); err != nil ||
				o.Identity != "" && model.Identity() != o.Identity || o.Accept != nil && !o.Accept(&model) {
				continue
			}
		}
		if !slices.Contains(jobs, m.Job) {
			jobs = append(jobs, m.Job)
		}
		out = append(out, m)
	}
	switch {
	case len(out) == 0 && o.Number != 0 && len(numbers) > 0:
		slices.Reverse(numbers)
		return nil, fmt.Errorf("remote directory %s: %w: it has no generation %d; it has %s", o.From, remote.ErrNone, o.Number, strings.Join(numbers, ", "))
	case len(out) == 0 && (o.Identity != "" || o.Accept != nil) && len(numbers) > 0:
		return nil, fmt.Errorf("remote directory %s: %w", o.From, ErrNoEarlier)
	case len(out) == 0:
		return nil, fmt.Errorf("remote directory %s: %w: it has no generation of the job %q", o.From, remote.ErrNone, o.Job)
	case len(jobs) > 1:
		return nil, errkind.Errorf(errkind.Usage, "remote directory %s holds the models of several jobs; name one of them: %s", o.From, strings.Join(jobs, ", "))
	}
	bestFirst(out)
	return out, nil
}

// Newest returns the generation that would be restored for the job with the given name, among those
// that accept accepts; nil if there is none.
func Newest(all []*remote.Manifest, job string, accept func(*modeldir.Manifest) bool) *remote.Manifest {
	candidates, err := choose(&RestoreOptions{Job: job, Accept: accept}, all)
	if err != nil {
		return nil
	}
	return candidates[0]
}

// newer returns an error if the generation to restore, or one that may be newer than the best
// readable one, was published by a newer version of aibox; nil if none was. An older model is not
// taken instead, since the model made from it would become the newest.
func (o *RestoreOptions) newer(candidates []*remote.Manifest, faults []error) error {
	for _, fault := range faults {
		var newer *remote.NewerError
		if !errors.As(fault, &newer) || o.Job != "" && newer.Job != "" && newer.Job != o.Job {
			continue
		}
		switch {
		case o.Number != 0 && o.Number != newer.Number, o.Number == 0 && len(candidates) > 0 && (o.Identity != "" || candidates[0].Number > newer.Number):
		default:
			return newer
		}
	}
	return nil
}

// deletedMeanwhile reports whether restoring failed because another process has deleted the best of
// the generations.
func deletedMeanwhile(ctx context.Context, d *remote.Directory, candidates []*remote.Manifest, err error) bool {
	var damaged *remote.DamagedError
	if !errors.As(err, &damaged) {
		return false
	}
	now, _, err := d.Generations(ctx)
	return err == nil && !slices.ContainsFunc(now, func(m *remote.Manifest) bool { return m.ID == candidates[0].ID })
}

// restoreNewest restores the first complete one of the generations.
func restoreNewest(ctx context.Context, sources *source.Sources, d *remote.Directory, candidates []*remote.Manifest, o *RestoreOptions) (*Restored, error) {
	var faults []error
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
		if o.Number != 0 {
			break
		}
		if i+1 < len(candidates) {
			o.Logger.Error("a generation of the remote directory is damaged; the newest older one is restored instead, so what was trained since then is lost", "remote", d.URI(), "generation", m.Number, "instead", candidates[i+1].Number, "error", err)
		}
	}
	if o.Number != 0 {
		return nil, fmt.Errorf("%w; no other one is restored instead, since this one was requested by its number: `aibox generations %s` lists them", faults[0], d.URI())
	}
	return nil, fmt.Errorf("remote directory %s: none of the models that could be restored is intact (%d were tried): train a new one, unless a machine still has one: %w", d.URI(), len(faults), errors.Join(faults...))
}

func restoreOne(ctx context.Context, sources *source.Sources, d *remote.Directory, m *remote.Manifest, o *RestoreOptions) (out *Restored, err error) {
	began := time.Now()
	var model modeldir.Manifest
	if err := json.Unmarshal(m.Model, &model); err != nil {
		return nil, &remote.DamagedError{URI: fmt.Sprintf("%s@%d", d.URI(), m.Number), Reason: err.Error()}
	}
	if model.FormatVersion > modeldir.FormatVersion {
		return nil, fmt.Errorf("%s@%d has format %d, written by aibox %s; %w", d.URI(), m.Number, model.FormatVersion, model.AiboxVersion, errkind.ErrNewer)
	}
	if len(o.Dirs) > 0 && len(DirsFor(m, o.Dirs)) == 0 {
		o.Logger.Warn("the directories for tables are not used: the table of this model is of kind memory, and is saved in the model directory", "dirs", strings.Join(o.Dirs, ", "), "model", o.To)
	}
	again := *o
	if out, err := again.already(ctx, sources, d, m); out != nil || err != nil {
		return out, err
	}
	o = &again
	if err := d.Whole(ctx, m); err != nil { // before anything is fetched
		return nil, err
	}
	r, err := o.begin(m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	o.Logger.Info("restoring a model", "from", fmt.Sprintf("%s@%d", d.URI(), m.Number), "job", m.Job, "night", model.Night, "to", o.To, "bytes", m.Bytes())
	fetched, err := FetchFiles(ctx, d, m, r, o.RemainingFiles, o.Buckets != BucketsBefore, o.Logger)
	if err == nil {
		note(o.To, placeOf(sources, d.URI()), &o.Options) // before there is a model that could be used without this record
		err = r.Commit(ctx, MovedOrigin(model, m))
	}
	if err != nil {
		return nil, discardDamaged(r, err)
	}
	warnOfLeftovers(r, o.Logger)
	out = &Restored{ModelDir: o.To, Generation: r.Number(), Job: m.Job, Night: model.OfNight(), UsableSeconds: time.Since(began).Seconds(), Fetched: fetched.Fetched}
	out.Bytes = m.Bytes()
	rest := fetched.Later
	if rest > 0 && o.Buckets == BucketsAfter {
		o.Logger.Info("the model is usable; its other files are fetched now", "model", o.To, "generation", m.Number, "seconds_until_usable", out.UsableSeconds, "still_fetched", humanize.Bytes(rest))
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

// warnOfLeftovers logs which reports could not be replaced when a model was published.
func warnOfLeftovers(r *modeldir.Restoring, log *slog.Logger) {
	for _, err := range r.Leftovers() {
		log.Warn("reports of an earlier model could not be replaced; the next run tries again", "error", err)
	}
}

// discardDamaged withdraws what was restored if restoring failed because the remote directory is
// damaged.
func discardDamaged(r *modeldir.Restoring, err error) error {
	var damaged *remote.DamagedError
	if errors.As(err, &damaged) {
		err = errors.Join(err, r.Discard())
	}
	return err
}

// begin starts restoring a generation.
func (o *RestoreOptions) begin(m *remote.Manifest) (*modeldir.Restoring, error) {
	dirs := DirsFor(m, o.Dirs)
	if o.Beside {
		return modeldir.RestoreBeside(o.To, m.ID, dirs)
	}
	return modeldir.Restore(o.To, m.Number, m.ID, dirs)
}

// MovedOrigin returns the manifest of a model that comes from a remote directory. In it, the
// generation from which the model was made has its number there. If it is not there, it is one of
// the machine on which it was made.
func MovedOrigin(model modeldir.Manifest, m *remote.Manifest) modeldir.Manifest {
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
