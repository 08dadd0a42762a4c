package trainer

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// unreadable is a file with rows of a table that cannot be read for copying once another file
// exists.
type unreadable struct {
	after  string
	moment bool // only the first read fails

	mu    sync.Mutex
	bad   os.FileInfo // nil: none was read yet
	reads int         // that have failed
}

func (b *unreadable) inject(t *testing.T) {
	diskfault.Inject(func(operation, at string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if operation != "read to copy" || !sparsetable.HasRows(filepath.Base(at)) || !disk.Exists(b.after) || b.moment && b.reads > 0 {
			return nil
		}
		info, err := os.Stat(at)
		if err != nil {
			return nil
		}
		if b.bad == nil {
			b.bad = info
			held, err := os.Open(at) // so that no other file gets its number
			if err != nil {
				t.Error(err)
			}
			t.Cleanup(func() { _ = held.Close() })
		}
		if !os.SameFile(info, b.bad) {
			return nil
		}
		b.reads++
		return syscall.EIO
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
}

// TestBadBlocksWhilePublishing checks a file of the table of a committed model that cannot be read
// when the model is published. If that happens only once, the model is published. Otherwise the job
// begins again from the last snapshot, or from the beginning, makes the model of an undisturbed
// run, and publishes that. A job that would start from the damaged model ends without training
// again.
func TestBadBlocksWhilePublishing(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for _, c := range []struct {
		name   string
		set    string
		moment bool // only the first read fails
		again  bool
	}{
		{name: "snapshots", set: "snapshots.remote=REMOTE", again: true},
		{name: "no snapshots", set: "training.epochs=2", again: true},
		{name: "for a moment", set: "snapshots.remote=REMOTE", moment: true},
		{name: "newest model", set: "training.warm_start=latest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := job(t, "fm", onTwoDisks("output.remote="+t.TempDir(), strings.Replace(c.set, "REMOTE", t.TempDir(), 1))...)
			b := &unreadable{after: filepath.Join(j.Output.ModelDir, report.SummaryName), moment: c.moment}
			b.inject(t)
			var log bytes.Buffer
			opts := quiet
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			opts.afterPass = func(ctx context.Context, r *run) error {
				if r.snapshots.wait(); r.snapshots.uploads != nil && !r.snapshots.uploads.Finish(ctx) {
					t.Error("a snapshot was not uploaded")
				}
				return nil
			}
			s, err := Train(t.Context(), j, opts)
			if err != nil || b.reads == 0 {
				t.Fatalf("after %d reads that failed: %v\n%s", b.reads, err, log.String())
			}
			diskfault.Inject(nil)
			said := log.String()
			if again := strings.Contains(said, "The job starts again from the last intact snapshot"); again != c.again || (s.Published != nil) != (c.again || c.moment) || (len(s.Recoveries) == 1) != c.again {
				t.Fatalf("published %+v, recoveries %+v:\n%s", s.Published, s.Recoveries, said)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			if !c.again {
				return
			}
			if from := s.Recoveries[0].From; j.Snapshots.Remote != "" && from != j.Snapshots.Remote || j.Snapshots.Remote == "" && from != "a new model" {
				t.Errorf("it went on from %s:\n%s", from, said)
			}
		})
	}
}

// TestBadBlocksWhilePublishingANight checks that a night whose model cannot be read when it is
// published is trained again from the model that it started from.
func TestBadBlocksWhilePublishingANight(t *testing.T) {
	set := onSSD("sparse_table.dirs=[AT/a, AT/b]")
	home, m := newMachine(t, "", set...), newMachine(t, t.TempDir(), set...)
	home.night("2026-11-21")
	want := home.night("2026-11-22")
	m.night("2026-11-21")
	b := &unreadable{after: modeldir.ReportOf(filepath.Join(m.at, "model"), "gen-000002", report.SummaryName)}
	b.inject(t)
	got := m.night("2026-11-22")
	if b.reads < 2 || len(got.Recoveries) != 1 || got.Published == nil || got.Digest != want.Digest {
		t.Errorf("after %d reads that failed: recoveries %+v, published %+v, digest %s, want %s\n%s", b.reads, got.Recoveries, got.Published, got.Digest, want.Digest, m.log.String())
	}
}
