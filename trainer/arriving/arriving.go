package arriving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/chain"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// Options say of which run the files are, and how they are fetched.
type Options struct {
	Job     *configs.Job
	Sources *source.Sources
	Status  *report.Status
	Log     *slog.Logger
	// Begin begins to fetch what lacks.
	Begin func(*remote.Arriving)
}

// Files are the files of a run's table that are fetched while it is trained, if there are some.
type Files struct {
	*remote.Arriving // nil: all files are there
	Options
	Restored   report.Arrival // what was restored before; zero: nothing
	Distrusted string         // id of a snapshot in snapshots.remote whose files were found damaged

	uri    string
	opened time.Time
	usable float64 // seconds
}

// Open opens what the records of the run's table, in its directories or else in those of w, say
// lacks, and begins to fetch it. It does nothing if the table is whole. start is the model that the
// run has started from.
func (f *Files) Open(w *modeldir.Writer, dirs []string, start *chain.Start) error {
	if len(dirs) == 0 {
		dirs = []string{w.TableDir()}
	}
	said, err := remote.AnnouncedIn(modeldir.ArrivingRecords(dirs)...)
	switch {
	case modeldir.DiskLost(err):
		return modeldir.TableLost(dirs, err)
	case err != nil:
		return w.Incomplete(err)
	case said != nil && said.Damaged != "":
		f.Distrusted = said.Manifest.ID
		return w.Incomplete(said.Fault())
	case said != nil:
		records, places := transfer.RecordsOf(f.Job.Output.ModelDir, said.Manifest.ID)
		return modeldir.TableFailed(dirs, f.fetch(said.URI, records, places))
	}
	// The model from which an interrupted run has copied its rows. Others that were never whole,
	// such as one that a restore has taken the place of, are none of the run's business, and may be
	// gone from the remote directory.
	for _, t := range modeldir.Arriving(f.Job.Output.ModelDir) {
		if start == nil || start.ModelDir != "" || start.Generation != t.Generation {
			continue
		}
		if said, err := remote.AnnouncedIn(t.Records...); err == nil && said != nil && said.Damaged == "" {
			return f.fetch(said.URI, t.Records, t.Dirs)
		}
	}
	return nil
}

// fetch begins to fetch what records say lacks, from the remote directory uri into
// the directories of tables.
func (f *Files) fetch(uri string, records, places []string) error {
	d, err := transfer.Open(f.Sources, uri, int64(f.Job.Output.RemoteBytesPerSecond), "restoring", f.Log)
	if err != nil {
		return err
	}
	a, err := transfer.OpenArriving(d, records, places)
	if err != nil {
		return err
	}
	f.Arriving, f.uri, f.opened = a, uri, time.Now()
	f.Begin(a)
	f.Status.Arrives(a)
	return nil
}

// Clone prepares the run for cloning the table of the model p that it starts from, whose
// files have not all arrived: they go on arriving in both. o says where the run's table is. Where
// the files cannot be linked, or another process may write them, it waits until they are there.
func (f *Files) Clone(ctx context.Context, p *modeldir.Model, o *sparsetable.Options) error {
	from := p.Arriving()
	if from == nil {
		return nil
	}
	to := o.SSD.Dirs
	if len(to) == 0 {
		to = []string{o.Dir}
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return err
		}
	}
	linked := true
	for _, dir := range from.Dirs {
		linked = linked && slices.ContainsFunc(to, func(d string) bool { return sparsetable.CanLink(dir, d) })
	}
	if !linked {
		return f.wait(ctx, p)
	}
	records := modeldir.ArrivingRecords(to)
	if err := remote.CopyRecord(from.Records, records); err != nil {
		return err
	}
	if err := f.openModel(p, slices.Concat(from.Dirs, to), slices.Concat(from.Records, records)); err != nil {
		return err
	}
	o.SSD.Source = f.Source()
	return nil
}

// openModel begins to fetch what the files of the model lack that the run starts from.
func (f *Files) openModel(p *modeldir.Model, places, records []string) error {
	said, err := transfer.Announced(p, records)
	if said == nil {
		return err
	}
	if err := f.fetch(said.URI, records, places); err != nil {
		return err
	}
	p.Source = f.Source()
	return nil
}

// Read begins to fetch what the table of the model that the run starts from lacks, before
// all of its rows are read.
func (f *Files) Read(p *modeldir.Model) error {
	from := p.Arriving()
	if from == nil || f.Arriving != nil {
		return nil
	}
	return f.openModel(p, from.Dirs, from.Records)
}

// wait waits until all files of the model have arrived that the run starts from.
func (f *Files) wait(ctx context.Context, p *modeldir.Model) error {
	from := p.Arriving()
	if from == nil {
		return nil
	}
	if err := f.openModel(p, from.Dirs, from.Records); err != nil {
		return err
	}
	f.Start()
	return f.Whole(ctx)
}

// Source is what the run's table reads from what lacks.
func (f *Files) Source() sparsetable.Source {
	if f.Arriving == nil {
		return nil
	}
	return f.Arriving
}

// Ready notes that training can go on.
func (f *Files) Ready() {
	if f.Arriving != nil {
		f.usable = f.Restored.UsableSeconds + time.Since(f.opened).Seconds()
		s := f.Stats()
		f.Log.Info("training begins while files of its table are fetched", "remote", f.uri, "seconds_until_usable", f.usable, "bytes", s.TotalBytes, "arrived_bytes", s.ArrivedBytes)
	}
}

// Report says what was restored for the run, nil if nothing was.
func (f *Files) Report() *report.Arrival {
	out := f.Restored
	if f.Arriving != nil {
		s := f.Stats()
		out.Remote, out.UsableSeconds, out.WholeSeconds = f.uri, f.usable, 0
		out.Bytes, out.FetchedBytes, out.FetchedAgain = max(out.Bytes, s.TotalBytes), out.FetchedBytes+s.FetchedBytes, out.FetchedAgain+s.Again
		if s.WholeSeconds > 0 {
			out.WholeSeconds = f.Restored.WholeSeconds + s.WholeSeconds
		}
	} else if out.Bytes == 0 {
		return nil
	}
	return &out
}

// Whole waits until everything is there.
func (f *Files) Whole(ctx context.Context) error {
	if f.Arriving == nil {
		return nil
	}
	return f.Wait(ctx)
}

// Close ends fetching. What the table waits for then fails, so the table is closed after it.
func (f *Files) Close() error {
	if f.Arriving == nil {
		return nil
	}
	return f.Stop()
}

// Forget forgets what was closed, except what is not to be trusted.
func (f *Files) Forget() { f.Arriving, f.Restored = nil, report.Arrival{} }

// Check fails if it is known that not everything will be there.
func (f *Files) Check() error {
	if f.Arriving == nil {
		return nil
	}
	return f.Err()
}

// ErrDistrusted says that the interrupted run is not gone on with.
var ErrDistrusted = errors.New("training cannot go on")

// Distrust is the error of a run that has failed for a fault of its table's files, which had
// not all arrived: the fault may be that of the snapshot in snapshots.remote. It lets the
// next process fetch that as a whole, or an older one.
func (f *Files) Distrust(failure error) error {
	var lost *remote.DamagedError
	if f.Arriving == nil || !errors.As(failure, &lost) && !modeldir.Damaged(failure) || f.Stats().WholeSeconds > 0 && f.Err() == nil {
		return failure
	}
	f.Arriving.Distrust(failure)
	return errkind.As(errkind.IO, fmt.Errorf("%w: what was restored from %s is damaged, as was found after training had begun: start the job again, and it is fetched once more as a whole or, if it is damaged there, the newest older one is used: %v", ErrDistrusted, f.uri, failure))
}
