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

// Options say which run the files belong to, and how they are fetched.
type Options struct {
	Job     *configs.Job
	Sources *source.Sources
	Status  *report.Status
	Log     *slog.Logger
	// Begin starts fetching what is missing.
	Begin func(*remote.Arriving)
}

// Files are the files of a run's table that are fetched during training, if there are any.
type Files struct {
	*remote.Arriving // nil if all files are there
	Options
	Restored  report.Arrival // what was restored before the run; zero if nothing was
	DamagedID string         // ID of a snapshot in snapshots.remote whose files were found damaged

	uri    string
	opened time.Time
	usable float64 // seconds until the table was usable
}

// Open starts fetching what is missing from the run's table, according to the records in dirs or,
// if there are none, in w's table directory. It does nothing if the table is complete. start is the
// model that the run has started from.
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
		f.DamagedID = said.Manifest.ID
		return w.Incomplete(said.Fault())
	case said != nil:
		records, places := transfer.RecordsOf(f.Job.Output.ModelDir, said.Manifest.ID)
		return modeldir.TableFailed(dirs, f.fetch(said.URI, records, places))
	}
	// Continue with the model from which an interrupted run has copied its rows. Other models that
	// never became complete, such as one that a restore has replaced, do not concern the run, and
	// may be gone from the remote directory.
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

// fetch starts fetching what is missing according to records, from the remote directory uri into
// the tables' directories.
func (f *Files) fetch(uri string, records, places []string) error {
	d, err := transfer.OpenPresent(f.Sources, uri, int64(f.Job.Output.RemoteBytesPerSecond), "restoring", f.Log)
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

// Clone prepares the run for cloning the table of p, the model that it starts from, while files of
// p are still arriving: they go on arriving in both tables. o says where the run's table is. If the
// files cannot be linked, or another process may write them, Clone waits until they are there.
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

// openModel starts fetching what is missing from the model that the run starts from.
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

// Read starts fetching what is missing from the table of the model that the run starts from, before
// all of its rows are read.
func (f *Files) Read(p *modeldir.Model) error {
	from := p.Arriving()
	if from == nil || f.Arriving != nil {
		return nil
	}
	return f.openModel(p, from.Dirs, from.Records)
}

// wait waits until all files have arrived of the model that the run starts from.
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

// Source returns where the run's table reads missing files from; nil if none is missing.
func (f *Files) Source() sparsetable.Source {
	if f.Arriving == nil {
		return nil
	}
	return f.Arriving
}

// Ready records that training can begin or go on.
func (f *Files) Ready() {
	if f.Arriving != nil {
		f.usable = f.Restored.UsableSeconds + time.Since(f.opened).Seconds()
		s := f.Stats()
		f.Log.Info("training begins while files of its table are fetched", "remote", f.uri, "seconds_until_usable", f.usable, "bytes", s.TotalBytes, "arrived_bytes", s.ArrivedBytes)
	}
}

// Report describes what was restored for the run, nil if nothing was.
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

// Close ends fetching. Reads that wait for missing data fail then, so the table is closed after it.
func (f *Files) Close() error {
	if f.Arriving == nil {
		return nil
	}
	return f.Stop()
}

// Forget resets f, except for DamagedID.
func (f *Files) Forget() { f.Arriving, f.Restored = nil, report.Arrival{} }

// Check fails if it is known that not everything will arrive.
func (f *Files) Check() error {
	if f.Arriving == nil {
		return nil
	}
	return f.Err()
}

// ErrDamaged says that the interrupted run cannot be resumed.
var ErrDamaged = errors.New("training cannot go on")

// MarkDamaged returns the error of a run that has failed because of a fault in files of its table,
// while not all had arrived: the snapshot in snapshots.remote itself may be faulty. It makes the
// next process fetch that snapshot as a whole, or an older one.
func (f *Files) MarkDamaged(failure error) error {
	var lost *remote.DamagedError
	if f.Arriving == nil || !errors.As(failure, &lost) && !modeldir.Damaged(failure) || f.Stats().WholeSeconds > 0 && f.Err() == nil {
		return failure
	}
	f.Arriving.MarkDamaged(failure)
	return errkind.As(errkind.IO, fmt.Errorf("%w: what was restored from %s turned out to be damaged after training had begun; start the job again, which fetches all of it again or, if it is damaged there, uses the newest older one: %v", ErrDamaged, f.uri, failure))
}
