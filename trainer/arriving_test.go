package trainer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/transfer"
)

// withBuckets makes a job whose table has rows in buckets after a few passes.
func withBuckets(t *testing.T, set ...string) *configs.Job {
	t.Helper()
	return job(t, "deepfm", append(onSSD("sparse_table.memory_bytes=6MiB", "model.embedding_dim=512", "training.epochs=2", "training.accept_diverged=true"), set...)...)
}

// crashAfter trains until pass at, where the process counts as killed. It calls look before that.
func crashAfter(t *testing.T, j *configs.Job, at int, look func(r *run)) {
	t.Helper()
	opts := quiet
	passes := 0
	opts.afterPass = func(_ context.Context, r *run) error {
		if passes++; passes < at {
			return nil
		}
		look(r)
		return errCrash
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatalf("the run was to be killed, but %v", err)
	}
}

// inBackground replaces the function that starts to fetch in the background, until the test ends.
func inBackground(t *testing.T, start func(*remote.Arriving)) {
	t.Helper()
	before := startArriving
	t.Cleanup(func() { startArriving = before })
	startArriving = start
}

// recordOf returns the record of the files that have not arrived, or "" if there is none.
func recordOf(t *testing.T, dir string) (path string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == sparsetable.ArrivingName {
			path = at
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTrainsWhileTableArrives simulates the loss of a machine. Another one resumes the run while
// buckets of its table are only fetched as they are read. Its process is killed repeatedly before
// all of them have arrived. The last process must make the model of an undisturbed machine.
// Meanwhile the table must not count as complete.
func TestTrainsWhileTableArrives(t *testing.T) {
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	dir := t.TempDir()
	j := withBuckets(t, everyPass, "snapshots.remote="+dir)
	if !lostAt(t, j, 14, true) {
		t.Fatal("there were not so many passes")
	}
	inBackground(t, func(*remote.Arriving) {})
	for range 3 {
		crashAfter(t, j, 1, func(r *run) {
			s := r.arriving.Stats()
			if s.TotalBytes == 0 || s.ArrivedBytes == 0 || s.WholeSeconds != 0 {
				t.Errorf("%+v: the test shows nothing", s)
			}
			r.snapshots.wait()
		})
		record := recordOf(t, j.Output.ModelDir)
		if record == "" {
			t.Fatal("nothing says that files have not arrived")
		}
		o := sparsetable.Options{Kind: sparsetable.KindSSD, ReadOnly: true}
		o.SSD.Dirs = []string{filepath.Dir(record)}
		if tab, err := sparsetable.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrArriving) {
			t.Errorf("the table is opened: %v, %v", tab, err)
		}
		if _, err := sparsetable.Verify(t.Context(), o, func(sparsetable.Fault) {}, nil); !errors.Is(err, sparsetable.ErrArriving) {
			t.Errorf("the table is verified: %v", err)
		}
		if _, err := sparsetable.PortableFiles(o); !errors.Is(err, sparsetable.ErrArriving) {
			t.Errorf("the table is copied: %v", err)
		}
	}
	inBackground(t, (*remote.Arriving).Start)
	s, err := Train(t.Context(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Arrival; r == nil || r.Bytes == 0 || r.WholeSeconds == 0 || r.UsableSeconds == 0 {
		t.Errorf("%+v", s.Arrival)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
	if recordOf(t, j.Output.ModelDir) != "" {
		t.Error("the record is still there")
	}
	if names, _ := remoteFiles(t, dir); len(names) > 0 {
		t.Errorf("left in the remote directory: %v", names)
	}
}

// TestStoppedAtTheEndWhileTableArrives checks a run that is stopped while it waits, at the end of
// training, for files of its table. It must save all that it has trained, from which another process
// resumes.
func TestStoppedAtTheEndWhileTableArrives(t *testing.T) {
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	j := withBuckets(t, everyPass, "snapshots.remote="+t.TempDir())
	if !lostAt(t, j, 14, true) {
		t.Fatal("there were not so many passes")
	}
	j.Snapshots.Every = "1000000 passes"
	var files *remote.Arriving
	inBackground(t, func(a *remote.Arriving) { files = a })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var trained *run
	opts := quiet
	opts.afterPass = func(_ context.Context, r *run) error {
		trained = r
		return nil
	}
	opts.Logger = slog.New(onMessage{onMessage{quiet.Logger.Handler(), "evaluated", func() {
		if trained.state.Epoch == j.Training.Epochs {
			cancel()
		}
	}}, "waiting until the last snapshot is uploaded", func() { files.Start() }})
	_, err := Train(ctx, j, opts)
	var again *ResumableError
	if errkind.Of(ctx, err) != errkind.Interrupted || !errors.As(err, &again) {
		t.Fatal(err)
	}
	if last := trained.state.Engine.Step; again.From.Step != last {
		t.Errorf("%d steps were trained, and the run resumes after step %d", last, again.From.Step)
	}
	inBackground(t, (*remote.Arriving).Start)
	got := outcome(t, j, train(t, j))
	got.compare(t, &want)
}

// TestArrivingTableDamagedOnce damages once what is fetched of the table's files while training
// continues: headers, buckets that are read one by one, and files that are read as a whole. The
// bytes must be fetched again, without any other effect.
func TestArrivingTableDamagedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: trains large tables many times; not in short mode")
	}
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	dir := t.TempDir()
	j := withBuckets(t, everyPass, "snapshots.remote="+dir)
	if !lostAt(t, j, 14, true) {
		t.Fatal("there were not so many passes")
	}
	rng := testseed.Rand(t)
	good := make(map[string][]byte)
	for _, name := range newestBuckets(t, dir) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		good[name] = bytes.Clone(data)
		for at := rng.IntN(512); at < len(data); at += 512 {
			data[at] ^= 1
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	heal := func() {
		for name, data := range good { // at one instant, since others read them
			if err := errors.Join(os.WriteFile(name+".tmp", data, 0o644), os.Rename(name+".tmp", name)); err != nil {
				t.Error(err)
			}
		}
	}
	var healed sync.Once
	started := make(chan struct{})
	inBackground(t, func(a *remote.Arriving) {
		go func() {
			<-started // what is read is damaged first
			a.Start()
		}()
	})
	opts := quiet
	opts.Logger = slog.New(onMessage{quiet.Logger.Handler(), "a fetched part of a file of the remote directory is damaged", func() {
		healed.Do(heal)
	}})
	passes := 0
	opts.afterPass = func(context.Context, *run) error {
		if passes++; passes == 2 {
			healed.Do(func() { t.Error("no damaged bytes were read") })
			close(started)
		}
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Arrival == nil || s.Arrival.FetchedAgain == 0 || len(s.Resumed) == 0 {
		t.Errorf("%+v", s.Arrival)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}

// onMessage is a log that calls do before each message that begins with a text.
type onMessage struct {
	slog.Handler
	text string
	do   func()
}

func (h onMessage) Enabled(context.Context, slog.Level) bool { return true }

func (h onMessage) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.text) {
		h.do()
	}
	return h.Handler.Handle(ctx, r)
}

// TestArrivingTableDamaged checks a bucket file that turns out to be damaged in the remote
// directory after training was resumed from it. The run ends with an error that says so. The next
// run fetches the complete snapshot, if it is no longer damaged, or uses the one before it.
func TestArrivingTableDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: trains large tables many times; not in short mode")
	}
	left := withBuckets(t)
	want := outcome(t, left, train(t, left))
	for _, healed := range []bool{false, true} {
		dir := t.TempDir()
		j := withBuckets(t, everyPass, "snapshots.remote="+dir)
		if !lostAt(t, j, 14, true) {
			t.Fatal("there were not so many passes")
		}
		names := newestBuckets(t, dir)
		var good [][]byte
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			good = append(good, bytes.Clone(data))
			data[len(data)-1] ^= 1
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		inBackground(t, func(*remote.Arriving) {})
		opts := quiet
		opts.afterPass = func(ctx context.Context, r *run) error {
			r.arriving.Start()
			_ = r.arriving.Wait(ctx) // the run sees it, too
			return nil
		}
		if _, err := Train(t.Context(), j, opts); err == nil || !strings.Contains(err.Error(), "start the job again") {
			t.Fatalf("training went on with damaged files: %v", err)
		}
		inBackground(t, (*remote.Arriving).Start)
		if healed {
			for i, name := range names {
				if err := os.WriteFile(name, good[i], 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		var log bytes.Buffer
		opts = quiet
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Train(t.Context(), j, opts)
		if err != nil {
			t.Fatal(err)
		}
		got := outcome(t, j, s)
		got.compare(t, &want)
		if older := strings.Contains(log.String(), "the one before it is used"); older == healed || len(s.Resumed) == 0 {
			t.Errorf("healed: %v, went on at %+v:\n%s", healed, s.Resumed, log.String())
		}
	}
}

// newestBuckets returns the objects with bucket files of the newest snapshot in a remote directory
// that no other snapshot has.
func newestBuckets(t *testing.T, dir string) (names []string) {
	t.Helper()
	d := openDirectory(t, dir)
	all, _, err := d.Snapshots(t.Context())
	if err != nil || len(all) < 2 {
		t.Fatalf("%d snapshots: %v", len(all), err)
	}
	var older []string
	for _, m := range all[1:] {
		for _, f := range m.Files {
			for _, p := range f.Parts {
				older = append(older, p.Object)
			}
		}
	}
	for _, f := range all[0].Files {
		for _, p := range f.Parts {
			if transfer.IsBucketFile(&f) && p.Bytes > 0 && !slices.Contains(older, p.Object) {
				names = append(names, filepath.Join(dir, "objects", p.Object))
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("the newest snapshot has no bucket files of its own")
	}
	return names
}

func openDirectory(t *testing.T, dir string) *remote.Directory {
	t.Helper()
	sources := jobsource.New(new(configs.Job), quiet.Logger)
	t.Cleanup(func() {
		if err := sources.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := transfer.Open(sources, dir, 0, "", quiet.Logger)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// records returns the records of files that have not arrived in directories below dirs.
func records(t *testing.T, dirs ...string) (n int) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == sparsetable.ArrivingName {
				n++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestStartsWhileModelArrives starts a night on a new machine from the model in output.remote while
// that model's table arrives. The process is killed repeatedly before all files have arrived. The
// last process must make the model of a machine that had all files. If every row has to be
// converted, the rows are read as they arrive.
func TestStartsWhileModelArrives(t *testing.T) {
	for name, second := range map[string][]string{
		"links":       nil,
		"directories": {"sparse_table.dirs=[MODEL-a,MODEL-b]"},
		"conversion":  {"model.embedding_dim=256"},
	} {
		if testing.Short() && name != "directories" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			set := []string{"training.warm_start=latest", everyPass, "output.keep_generations=2"}
			nights := func(remote string) (*configs.Job, *configs.Job) {
				first := withBuckets(t, append(slices.Clip(set), "output.remote="+remote)...)
				later := withBuckets(t, append(append(slices.Clip(set), "output.remote="+remote, "output.model_dir="+first.Output.ModelDir), second...)...)
				train(t, first)
				return first, later
			}
			_, left := nights(t.TempDir())
			want := outcome(t, left, train(t, left))
			first, j := nights(t.TempDir())
			lost(t, first)
			places := append([]string{j.Output.ModelDir}, j.SparseTable.Dirs...)
			inBackground(t, func(*remote.Arriving) {})
			for _, at := range []int{1, 4, 2} {
				crashAfter(t, j, at, func(r *run) {
					if r.arriving.Arriving == nil {
						t.Error("nothing arrives")
						return
					}
					s := r.arriving.Stats()
					if s.TotalBytes == 0 || s.WholeSeconds != 0 {
						t.Errorf("%+v: the test shows nothing", s)
					}
					want := 2 * max(1, len(j.SparseTable.Dirs)) // of the model, and of the run
					if n := records(t, places...); n != want && name != "conversion" || n == 0 {
						t.Errorf("%d records, want %d", n, want)
					}
					r.snapshots.wait()
				})
			}
			earlier := modeldir.JoinName(j.Output.ModelDir, 1) // which has not all arrived
			whole, err := inference.Inspect(t.Context(), modeldir.JoinName(left.Output.ModelDir, 1), false, testjobs.Quiet)
			if err != nil {
				t.Fatal(err)
			}
			if in, err := inference.Inspect(t.Context(), earlier, false, testjobs.Quiet); err != nil || in.Digest != whole.Digest || records(t, places...) == 0 {
				t.Errorf("the model that arrives: %+v, %v", in, err)
			}
			inBackground(t, (*remote.Arriving).Start)
			s, err := Train(t.Context(), j, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if a := s.Arrival; a == nil || a.WholeSeconds == 0 {
				t.Errorf("%+v", a)
			}
			if n := records(t, places...); n != 0 {
				t.Errorf("%d records are left", n)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			before, err := inference.Inspect(t.Context(), earlier, true, testjobs.Quiet)
			if err != nil || len(before.Faults) > 0 {
				t.Errorf("the model that the night started from: %+v, %v", before, err)
			}
		})
	}
}

// TestModelThatArrivesDamaged checks a model in output.remote that turns out to be damaged after a
// night has started from it. The night ends with an error that says so, and the next attempt
// restores the complete model once it is no longer damaged.
func TestModelThatArrivesDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: trains large tables many times; not in short mode")
	}
	dir := t.TempDir()
	j := withBuckets(t, "training.warm_start=latest", everyPass, "output.remote="+dir)
	train(t, j)
	left := withBuckets(t, "training.warm_start=latest", everyPass)
	train(t, left)
	want := outcome(t, left, train(t, left))
	lost(t, j)
	d := openDirectory(t, dir)
	all, _, err := d.Generations(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d generations: %v", len(all), err)
	}
	flip := func() {
		for i := range all[0].Files {
			if f := &all[0].Files[i]; transfer.IsBucketFile(f) {
				p := f.Parts[len(f.Parts)-1]
				name := filepath.Join(dir, "objects", p.Object)
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				data[len(data)-1] ^= 1
				if err := os.WriteFile(name, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	flip()
	inBackground(t, func(*remote.Arriving) {})
	opts := quiet
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.arriving.Start()
		_ = r.arriving.Wait(ctx) // the run sees it, too
		return nil
	}
	if _, err := Train(t.Context(), j, opts); err == nil || !strings.Contains(err.Error(), "start the job again") {
		t.Fatalf("training went on with damaged files: %v", err)
	}
	inBackground(t, (*remote.Arriving).Start)
	if _, err := Train(t.Context(), j, quiet); err == nil || !strings.Contains(err.Error(), "nor restored") {
		t.Fatalf("training began with damaged files: %v", err)
	}
	flip()
	s, err := Train(t.Context(), j, quiet)
	if err != nil {
		t.Fatal(err)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}
