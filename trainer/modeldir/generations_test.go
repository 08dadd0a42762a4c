package modeldir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
)

// night commits a model of one value that was made from the model of dir, with a report of that
// value, and keeps that many generations.
func night(t *testing.T, dir string, value float32, keep int) *Manifest {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m := fill(t, w, value)
	if err := commit(w, m, value, keep); err != nil {
		t.Fatal(err)
	}
	if left := w.Leftovers(); len(left) > 0 {
		t.Logf("left over: %v", left)
	}
	return m
}

// commit commits what fill has written.
func commit(w *Writer, m *Manifest, value float32, keep int) error {
	w.Keep = keep
	if top, err := readManifest(w.dir); err == nil {
		m.StartedFrom = Origin{Generation: top.Generation}
	}
	err := os.WriteFile(w.Report("summary.json"), fmt.Append(nil, value), 0o644)
	if err == nil {
		err = os.MkdirAll(w.Report("tensorboard"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.Report("tensorboard"), fmt.Sprint("events-", value)), fmt.Append(nil, value), 0o644)
	}
	if err != nil {
		return err
	}
	return w.Commit(m, []byte("name: x\n"), []byte("{}"))
}

// numbers lists the complete generations with their values, in the form "1:10 2:20*", where a star
// marks the one that is the model.
func numbers(t *testing.T, dir string) string {
	t.Helper()
	all, err := Generations(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range slices.Backward(all) {
		if g.Fault != nil {
			out = append(out, fmt.Sprintf("%d:damaged", g.Number))
			continue
		}
		text := fmt.Sprintf("%d:%g", g.Number, value(t, JoinName(dir, g.Number)))
		if g.Published {
			text += "*"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// wantReports fails unless the reports at the top of dir are exactly those of the run of a value.
func wantReports(t *testing.T, dir string, value float32) {
	t.Helper()
	want := fmt.Sprint(value)
	got, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil || string(got) != want {
		t.Errorf("the summary is that of %q, %v, want that of %s", got, err, want)
	}
	if names := entries(t, filepath.Join(dir, "tensorboard")); len(names) != 1 || names[0] != "events-"+want {
		t.Errorf("the events are %v, want those of %s", names, want)
	}
}

// TestGenerationsAreKept checks that the last models stay, each complete, and can be read by
// number.
func TestGenerationsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	for i, want := range []string{"1:10*", "1:10 2:20*", "1:10 2:20 3:30*", "2:20 3:30 4:40*", "3:30 4:40 5:50*"} {
		v := float32(i+1) * 10
		night(t, dir, v, 3)
		if have := numbers(t, dir); have != want {
			t.Fatalf("after %d nights there are %s, want %s", i+1, have, want)
		}
		wantReports(t, dir, v)
	}
	for name, want := range map[string]string{
		dir + "@2":   "it has no generation 2; it has 3, 4 and 5 (published)",
		dir + "@77":  "it has no generation 77",
		dir + "@0":   "the directory does not exist",
		dir + "@":    "the directory does not exist",
		dir + "x@3":  dir + "x: no model here: the directory does not exist",
		dir + "@3@4": "the directory does not exist",
		dir + "@+3":  "the directory does not exist",
	} {
		if _, err := Open(name); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A directory that is called so is that directory.
	night(t, dir+"@3", 1, 1)
	if got := value(t, dir+"@3"); got != 1 {
		t.Errorf("the directory %s@3 holds %g", dir, got)
	}
	if err := os.RemoveAll(dir + "@3"); err != nil {
		t.Fatal(err)
	}
	// Fewer are kept once the job says so; a run that makes no model deletes none.
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.Keep = 1
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if have := numbers(t, dir); have != "3:30 4:40 5:50*" {
		t.Errorf("after a failure there are %s", have)
	}
	night(t, dir, 60, 1)
	if have := numbers(t, dir); have != "7:60*" && have != "6:60*" {
		t.Errorf("there are %s, want one", have)
	}
}

// TestRollback checks that another generation becomes the model with its reports, that the next run
// starts from it, and that the generation that was rolled back is the first to be deleted.
func TestRollback(t *testing.T) {
	dir := t.TempDir()
	back := func(number int, want string) {
		t.Helper()
		if _, err := Rollback(dir, number); err != nil {
			t.Fatal(err)
		}
		if have := numbers(t, dir); have != want {
			t.Errorf("to %d: %s, want %s", number, have, want)
		}
		wantReports(t, dir, value(t, dir))
	}
	if _, err := Rollback(dir, 0); !errors.Is(err, ErrNoModel) {
		t.Errorf("nothing to go back to: %v", err)
	}
	night(t, dir, 1, 3)
	if _, err := Rollback(dir, 0); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), "no generation before 1") {
		t.Errorf("nothing to go back to: %v", err)
	}
	night(t, dir, 2, 3)
	night(t, dir, 3, 3)
	back(0, "1:1 2:2* 3:3")
	back(0, "1:1* 2:2 3:3")
	back(3, "1:1 2:2 3:3*")
	back(3, "1:1 2:2 3:3*")
	back(1, "1:1* 2:2 3:3")
	night(t, dir, 4, 3) // made from 1
	if have := numbers(t, dir); have != "1:1 3:3 4:4*" {
		t.Errorf("have %s", have)
	}
	back(0, "1:1* 3:3 4:4")
	night(t, dir, 5, 2)
	if have := numbers(t, dir); have != "1:1 5:5*" {
		t.Errorf("have %s", have)
	}
	if _, err := Rollback(dir, 4); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), "it has 1 and 5 (published)") {
		t.Errorf("a generation that is gone: %v", err)
	}
	// A run holds the lock.
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Rollback(dir, 0); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a run: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// Reports that only the other run had go with it.
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if w, err = Create(dir); err != nil {
		t.Fatal(err)
	}
	m := fill(t, w, 6)
	if err := os.WriteFile(w.Report("quarantine.jsonl"), []byte("bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(commit(w, m, 6, 2), w.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "quarantine.jsonl")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := Rollback(dir, 0); err != nil {
		t.Fatal(err)
	}
	wantReports(t, dir, 5)
	if disk.Exists(filepath.Join(dir, "quarantine.jsonl")) || !disk.Exists(filepath.Join(dir, "notes.txt")) {
		t.Errorf("left: %v", entries(t, dir))
	}
}

// TestRollbackBesideReader checks that a process that reads a model can continue to read it,
// whichever model is published.
func TestRollbackBesideReader(t *testing.T) {
	dir := t.TempDir()
	night(t, dir, 1, 2)
	night(t, dir, 2, 2)
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	older, err := Open(JoinName(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Rollback(dir, 0); err != nil {
		t.Fatal(err)
	}
	night(t, dir, 3, 1) // deletes neither, since both are read
	for want, m := range map[float32]*Model{1: older, 2: m} {
		table, err := m.OpenTable(t.Context(), sparsetable.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Tensor("w").Data[0] != want {
			t.Errorf("%v, want %g", m.Tensor("w").Data, want)
		}
		if err := errors.Join(table.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	}
	if have := numbers(t, dir); have != "3:3*" {
		t.Errorf("there are %s", have)
	}
	night(t, dir, 4, 1)
	if have := names(t, dir); len(have) != 1 {
		t.Errorf("generations %v are left, want one", have)
	}
}

// TestEarlierVersions checks that a directory of an earlier version, whose model has no manifest of
// its own and whose reports were moved, keeps that model.
func TestEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	m := night(t, dir, 1, 1)
	gen := filepath.Join(dir, m.Generation)
	if err := errors.Join(os.Remove(filepath.Join(gen, ManifestName)), os.RemoveAll(filepath.Join(gen, modelfiles.Reports))); err != nil {
		t.Fatal(err)
	}
	night(t, dir, 2, 2)
	if have := numbers(t, dir); have != "1:1 2:2*" {
		t.Fatalf("have %s", have)
	}
	if _, err := Rollback(dir, 0); err != nil {
		t.Fatal(err)
	}
	if have := numbers(t, dir); have != "1:1* 2:2" {
		t.Fatalf("have %s", have)
	}
}

// TestDamagedGenerations checks that a damaged generation is listed but not published, and that a
// complete one can be published in place of a manifest that is damaged or missing.
func TestDamagedGenerations(t *testing.T) {
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(dir string, number int, want string) {
		t.Helper()
		before, err := os.ReadFile(filepath.Join(dir, ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		var bad *CorruptionError
		if _, err := Rollback(dir, number); err == nil || !(errors.As(err, &bad) || errors.Is(err, os.ErrNotExist)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if after, err := os.ReadFile(filepath.Join(dir, ManifestName)); err != nil || string(after) != string(before) {
			t.Errorf("%s: the model has changed: %v", want, err)
		}
	}
	for _, c := range []struct{ file, text, want string }{
		{ManifestName, "garbage", "gen-000001/MODEL.json"},
		{ManifestName, "{}", "gen-000001/MODEL.json"},
		{ManifestName, "", "gen-000001/MODEL.json"},
		{modelfiles.Job, "other", "gen-000001/job.yaml"},
		{DenseName(5), "other", DenseName(5)},
		{modelfiles.Table, "", "table"},
		{modelfiles.Statistics, "", modelfiles.Statistics},
	} {
		dir := t.TempDir()
		night(t, dir, 1, 2)
		night(t, dir, 2, 2)
		path := filepath.Join(dir, nameOf(1), c.file)
		if c.text == "" && c.file != ManifestName {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		} else {
			put(path, c.text)
		}
		refused(dir, 1, c.want)
		if got := value(t, dir); got != 2 {
			t.Errorf("the model holds %g", got)
		}
		// The next run works, and it deletes what cannot be used like any other.
		night(t, dir, 3, 2)
		if have := numbers(t, dir); have != "2:2 3:3*" {
			t.Errorf("%s: there are %s", c.file, have)
		}
	}

	// The manifest at the top.
	for _, text := range []string{"garbage", `{"format_version": 1, "generation": "gen-000009", "dense": "y"}`, "-"} {
		dir := t.TempDir()
		night(t, dir, 1, 2)
		night(t, dir, 2, 2)
		top := filepath.Join(dir, ManifestName)
		if text == "-" {
			if err := os.Remove(top); err != nil {
				t.Fatal(err)
			}
		} else {
			put(top, text)
		}
		if _, err := Open(dir); err == nil {
			t.Errorf("%s: it opens", text)
		}
		if have := numbers(t, dir); have != "1:1 2:2" {
			t.Errorf("%s: there are %s", text, have)
		}
		if _, err := Rollback(dir, 0); !errors.Is(err, ErrNoModel) || !strings.Contains(err.Error(), "--to") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := Rollback(dir, 2); err != nil {
			t.Fatal(err)
		}
		if have := numbers(t, dir); have != "1:1 2:2*" {
			t.Errorf("%s: there are %s", text, have)
		}
		wantReports(t, dir, 2)
	}
}

// TestKeptTablesAreNoOrphans checks that the tables of all generations are needed, and are deleted
// with them.
func TestKeptTablesAreNoOrphans(t *testing.T) {
	at := t.TempDir()
	dir, ssd := filepath.Join(at, "model"), filepath.Join(at, "ssd")
	commitPlaced := func(keep int) []string {
		t.Helper()
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		dirs, err := w.PlaceTable([]string{ssd})
		if err != nil {
			t.Fatal(err)
		}
		m := fillPlaced(t, w, dirs)
		w.Keep = keep
		if err := w.Commit(m, nil, nil); err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	first, second := commitPlaced(2), commitPlaced(2)
	for _, dir := range []string{first[0], second[0]} {
		if !disk.Exists(dir) {
			t.Errorf("%s is gone", dir)
		}
	}
	// Another model's run beside it frees what killed runs left, and nothing else.
	placed(t, filepath.Join(at, "other", "model"), []string{ssd}, true)
	found, err := Orphans([]string{ssd}, nil)
	if err != nil || len(found) != 0 {
		t.Errorf("orphans: %+v, %v", found, err)
	}
	m, err := Open(JoinName(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	table, err := m.OpenTable(t.Context(), sparsetable.Options{MemoryBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(table.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	commitPlaced(2)
	if disk.Exists(first[0]) || !disk.Exists(second[0]) {
		t.Errorf("%s holds %v", ssd, entries(t, ssd))
	}
}

// TestReadTablesAreNoOrphans checks that a model that was replaced while a process read it keeps
// its table until that process ends, even if another process frees tables meanwhile.
func TestReadTablesAreNoOrphans(t *testing.T) {
	at := t.TempDir()
	dir, ssd := filepath.Join(at, "model"), filepath.Join(at, "ssd")
	first := placed(t, dir, []string{ssd}, true)
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	placed(t, dir, []string{ssd}, true)
	placed(t, filepath.Join(at, "other", "model"), []string{ssd}, true)
	table, err := m.OpenTable(t.Context(), sparsetable.Options{MemoryBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(table.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	placed(t, filepath.Join(at, "other", "model"), []string{ssd}, true)
	if disk.Exists(first[0]) {
		t.Error("nobody reads the table any more, and it is there")
	}
}

// TestManifestSaysWhere checks that the night and the origin in the manifest can be read back.
func TestManifestSaysWhere(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := fill(t, w, 1)
	m.Night, m.TrainData, m.SavedAt, m.StartedFrom = "2026-11-20T06", "abc", "2026-11-20T07:00:00Z", Origin{ModelDir: "/models/a", Generation: "gen-000007"}
	if err := errors.Join(w.Commit(m, nil, nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	model, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	if model.Manifest != *m || model.Number() != 1 {
		t.Errorf("%+v, want %+v", model.Manifest, m)
	}
	// A new model says nothing of an origin.
	data, err := json.Marshal(&Manifest{})
	if err != nil || strings.Contains(string(data), "started_from") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestGenerationMovedAway checks a published generation that is on another disk, behind a symbolic
// link, or is missing. No other run may get its number, since it would then write into the model,
// or its unfinished files would be read as the model.
func TestGenerationMovedAway(t *testing.T) {
	for _, linked := range []bool{true, false} {
		at := t.TempDir()
		dir := filepath.Join(at, "model")
		night(t, dir, 10, 3)
		night(t, dir, 20, 3)
		if err := os.Rename(filepath.Join(dir, "gen-000002"), filepath.Join(at, "moved")); err != nil {
			t.Fatal(err)
		}
		if linked {
			if err := os.Symlink(filepath.Join(at, "moved"), filepath.Join(dir, "gen-000002")); err != nil {
				t.Fatal(err)
			}
			if have := numbers(t, dir); have != "1:10 2:20*" {
				t.Errorf("behind a link: there are %s", have)
			}
		}
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if w.Number() != 3 {
			t.Errorf("linked: %v: the run has number %d, want 3", linked, w.Number())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		night(t, dir, 30, 3)
		if have, want := numbers(t, dir), map[bool]string{true: "1:10 2:20 3:30*", false: "1:10 3:30*"}[linked]; have != want {
			t.Errorf("linked: %v: there are %s, want %s", linked, have, want)
		}
	}
}

// TestDamagedGenerationsGoFirst checks that damaged generations are deleted before usable ones.
func TestDamagedGenerationsGoFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	for v := range 3 {
		night(t, dir, float32(v+1)*10, 3)
	}
	if err := os.WriteFile(filepath.Join(dir, "gen-000002", ManifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if have := numbers(t, dir); have != "1:10 2:damaged 3:30*" {
		t.Fatalf("there are %s", have)
	}
	night(t, dir, 40, 3)
	if have := numbers(t, dir); have != "1:10 3:30 4:40*" {
		t.Errorf("there are %s", have)
	}
}

// TestDirectoryThatCannotBeRead checks that a directory that cannot be listed, or whose files
// cannot be read, for a moment or permanently, is not treated as one without models or without an
// interrupted run. Every operation that would write to it must fail, and nothing may be deleted.
func TestDirectoryThatCannotBeRead(t *testing.T) {
	for _, forGood := range []bool{false, true} {
		for _, operation := range []string{"list", "read"} {
			for n := 0; ; n++ {
				dir := filepath.Join(t.TempDir(), "model")
				save(t, dir, 1)
				gen, _ := interrupt(t, dir, nil, `{"step":1}`)
				count := 0
				diskfault.Inject(func(op, path string) error {
					if op == operation && strings.HasPrefix(path, dir) {
						if count++; count > n && (forGood || count == n+1) {
							return unix.EIO
						}
					}
					return nil
				})
				resume, err := Interrupted(dir)
				var w *Writer
				if err == nil && resume != nil {
					w, err = Continue(dir, func([]byte) (bool, error) { return true, nil })
				}
				_, listed := Generations(dir)
				diskfault.Inject(nil)
				if count <= n { // nothing has failed
					if err != nil || listed != nil {
						t.Fatal(err, listed)
					}
					break
				}
				if !errors.Is(err, unix.EIO) && (w == nil || w.Resume() == nil) {
					t.Errorf("%s fails (%d, for good: %v): %v, and an interrupted run is not continued", operation, n, forGood, err)
				}
				if w != nil {
					w.Suspend()
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if value(t, dir) != 1 || !disk.Exists(filepath.Join(gen, resumeName)) {
					t.Errorf("%s fails (%d, for good: %v): the directory has %v", operation, n, forGood, names(t, dir))
				}
			}
		}
	}
}
