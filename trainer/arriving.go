package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// A run that goes on from a snapshot of snapshots.remote, or starts from a model of output.remote,
// does not wait for the buckets of its table: what it reads is fetched when it is read, and the
// rest in the background. Until all has arrived, each of the table's directories has a record of
// what lacks (sparsetable.ArrivingName), by which another process goes on with that. Before the model
// is committed, and before a snapshot is uploaded, everything is there and verified. `aibox
// restore` does the same with a model, without a run, and who only reads a model meanwhile
// reads what lacks from the remote directory (package transfer).
//
// The table of a run that starts from a model has links to that model's files, so it has
// a record of its own of the same files, and both are kept by the run.

// arriving is how far the files of a run's table are that is fetched while it is trained.
// The methods of a nil arriving do nothing.
type arriving struct {
	*remote.Arriving
	uri    string
	opened time.Time
	usable float64 // seconds
}

// openArriving opens what the record of the run's table says lacks, and begins to fetch it. It
// does nothing if the table is whole.
func (r *run) openArriving() error {
	dirs := r.table.dirs
	if len(dirs) == 0 {
		dirs = []string{r.models.writer.TableDir()}
	}
	said, err := remote.AnnouncedIn(modeldir.ArrivingRecords(dirs)...)
	switch {
	case modeldir.DiskLost(err):
		return modeldir.TableLost(dirs, err)
	case err != nil:
		return r.incomplete(err)
	case said != nil && said.Damaged != "":
		r.distrusted = said.Manifest.ID
		return r.incomplete(said.Fault())
	case said != nil:
		records, places := transfer.RecordsOf(r.job.Output.ModelDir, said.Manifest.ID)
		return modeldir.TableFailed(dirs, r.fetchArriving(said.URI, records, places))
	}
	// The model from which an interrupted run has copied its rows. Others that were never whole, such as one that a restore
	// has taken the place of, are none of the run's business, and may be gone from the remote directory.
	for _, t := range modeldir.Arriving(r.job.Output.ModelDir) {
		if r.models.start == nil || r.models.start.ModelDir != "" || r.models.start.Generation != t.Generation {
			continue
		}
		if said, err := remote.AnnouncedIn(t.Records...); err == nil && said != nil && said.Damaged == "" {
			return r.fetchArriving(said.URI, t.Records, t.Dirs)
		}
	}
	return nil
}

// fetchArriving begins to fetch what records say lacks, from the remote directory uri into
// the directories of tables.
func (r *run) fetchArriving(uri string, records, places []string) error {
	d, err := transfer.Open(r.data.Sources, uri, int64(r.job.Output.RemoteBytesPerSecond), "restoring", r.log)
	if err != nil {
		return err
	}
	a, err := transfer.OpenArriving(d, records, places)
	if err != nil {
		return err
	}
	r.arriving = &arriving{Arriving: a, uri: uri, opened: time.Now()}
	startArriving(a)
	r.opts.Status.Arrives(a)
	return nil
}

// clonesArriving prepares the run for cloning the table of the model that it starts from, whose
// files have not all arrived: they go on arriving in both. o says where the run's table is. Where
// the files cannot be linked, or another process may write them, it waits until they are there.
func (r *run) clonesArriving(ctx context.Context, o *sparsetable.Options) error {
	p := r.models.previous
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
		return r.waitsForPrevious(ctx)
	}
	records := modeldir.ArrivingRecords(to)
	if err := remote.CopyRecord(from.Records, records); err != nil {
		return err
	}
	if err := r.openPreviousArriving(slices.Concat(from.Dirs, to), slices.Concat(from.Records, records)); err != nil {
		return err
	}
	o.SSD.Source = r.arriving.source()
	return nil
}

// openPreviousArriving begins to fetch what the files of the model lack that the run starts
// from.
func (r *run) openPreviousArriving(places, records []string) error {
	p := r.models.previous
	said, err := transfer.Announced(p, records)
	if said == nil {
		return err
	}
	if err := r.fetchArriving(said.URI, records, places); err != nil {
		return err
	}
	p.Source = r.arriving.source()
	return nil
}

// readsArriving begins to fetch what the table of the model that the run starts from lacks, before
// all of its rows are read.
func (r *run) readsArriving() error {
	from := r.models.previous.Arriving()
	if from == nil || r.arriving != nil {
		return nil
	}
	return r.openPreviousArriving(from.Dirs, from.Records)
}

// waitsForPrevious waits until all files of the model have arrived that the run starts from.
func (r *run) waitsForPrevious(ctx context.Context) error {
	from := r.models.previous.Arriving()
	if from == nil {
		return nil
	}
	if err := r.openPreviousArriving(from.Dirs, from.Records); err != nil {
		return err
	}
	r.arriving.Start()
	return r.arriving.wait(ctx)
}

// startArriving begins to fetch what lacks. Tests replace it.
var startArriving = (*remote.Arriving).Start

// source is what the run's table reads from what lacks.
func (c *arriving) source() sparsetable.Source {
	if c == nil {
		return nil
	}
	return c.Arriving
}

// ready notes that training can go on, so many seconds after the table was opened.
func (r *run) ready() {
	if c := r.arriving; c != nil {
		c.usable = r.restored.WholeSeconds + time.Since(c.opened).Seconds()
		s := c.Stats()
		r.log.Info("training begins while files of its table are fetched", "remote", c.uri, "seconds_until_usable", c.usable, "bytes", s.TotalBytes, "arrived_bytes", s.ArrivedBytes)
	}
}

// arrival is nil if nothing was restored for the run.
func (r *run) arrival() *report.Arrival {
	c, out := r.arriving, r.restored
	if c != nil {
		s, before := c.Stats(), r.restored.WholeSeconds
		out.Remote, out.UsableSeconds, out.WholeSeconds = c.uri, c.usable, 0
		out.Bytes, out.FetchedBytes, out.FetchedAgain = max(out.Bytes, s.TotalBytes), out.FetchedBytes+s.FetchedBytes, out.FetchedAgain+s.Again
		if s.WholeSeconds > 0 {
			out.WholeSeconds = before + s.WholeSeconds
		}
	} else if out.Bytes == 0 {
		return nil
	}
	return &out
}

// wait waits until everything is there.
func (c *arriving) wait(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.Wait(ctx)
}

// close ends fetching. What the table waits for then fails, so the table is closed after it.
func (c *arriving) close() error {
	if c == nil {
		return nil
	}
	return c.Stop()
}

// check fails if it is known that not everything will be there.
func (c *arriving) check() error {
	if c == nil {
		return nil
	}
	return c.Err()
}

// errDistrusted says that the interrupted run is not gone on with.
var errDistrusted = errors.New("training cannot go on")

// distrust is the error of a run that has failed for a fault of its table's files, which had
// not all arrived: the fault may be that of the snapshot in snapshots.remote. It lets the
// next process fetch that as a whole, or an older one.
func (r *run) distrust(failure error) error {
	var lost *remote.DamagedError
	if r.arriving == nil || !errors.As(failure, &lost) && !modeldir.Damaged(failure) || r.arriving.Stats().WholeSeconds > 0 && r.arriving.Err() == nil {
		return failure
	}
	r.arriving.Distrust(failure)
	return errkind.As(errkind.IO, fmt.Errorf("%w: what was restored from %s is damaged, as was found after training had begun: start the job again, and it is fetched once more as a whole or, if it is damaged there, the newest older one is used: %v", errDistrusted, r.arriving.uri, failure))
}
