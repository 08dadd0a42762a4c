package modeldir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
	"aibox/trainer/tensorfile"
)

// save commits a model of one row and one tensor to dir.
func save(t *testing.T, dir string, value float32) *Manifest {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m := fill(t, w, value)
	if err := w.Commit(m, []byte("name: x\n"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return m
}

// fill writes everything that a commit of one model needs.
func fill(t *testing.T, w *Writer, value float32) *Manifest {
	t.Helper()
	ctx := context.Background()
	layout := sparsetable.Layout{ValueDim: 1}
	table, err := sparsetable.Open(ctx, sparsetable.Options{Dir: w.TableDir(), Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	ws, err := table.Pull(ctx, []uint64{7}, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	row := ws.Row(0)
	layout.Values(row)[0] = value
	layout.SetStats(row, sparsetable.RowStats{Count: 1})
	ws.Release()
	m := &Manifest{Dense: DenseName(5), Step: 5, KeptShare: 1}
	if err := w.SaveDense(m.Dense, []tensorfile.Tensor{{Name: "w", Shape: []int{1}, Data: []float32{value}}}); err != nil {
		t.Fatal(err)
	}
	p, err := table.Snapshot(ctx, m.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	m.TableSnapshot = info.ID
	digest, err := sparsetable.Digest(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	m.Digest = Digest(m.Step, m.KeptShare, []byte("{}"), []tensorfile.Tensor{{Name: "w", Shape: []int{1}, Data: []float32{value}}}, digest)
	return m
}

// value returns the value of the committed model of dir, and checks that both of its parts have it.
func value(t *testing.T, dir string) float32 {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	table, err := m.OpenTable(context.Background(), sparsetable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	ws, err := table.Pull(context.Background(), []uint64{7}, sparsetable.PullLookup)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Release()
	if got := ws.Row(0)[0]; got != m.Tensor("w").Data[0] {
		t.Fatalf("table holds %g, dense file %g", got, m.Tensor("w").Data[0])
	}
	return ws.Row(0)[0]
}

func TestCommitReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if _, err := Open(dir); !errors.Is(err, ErrNoModel) {
		t.Errorf("opening nothing: %v", err)
	}
	a := save(t, dir, 1)
	b := save(t, dir, 2)
	if got := value(t, dir); got != 2 {
		t.Errorf("model holds %g, want 2", got)
	}
	if a.Digest == b.Digest {
		t.Error("two models, one digest")
	}
	if g := names(t, dir); len(g) != 1 {
		t.Errorf("generations %v are left, want one", g)
	}
}

func TestCrashBeforeCommitKeepsTheEarlierModel(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1)
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, w, 2)
	w.lock.file.Close() // the process dies: no Close, no Commit
	if got := value(t, dir); got != 1 {
		t.Errorf("model holds %g, want 1", got)
	}
	if g := names(t, dir); len(g) != 2 {
		t.Fatalf("generations %v, want the model's and the abandoned one", g)
	}
	save(t, dir, 3)
	if got := value(t, dir); got != 3 {
		t.Errorf("model holds %g, want 3", got)
	}
	if g := names(t, dir); len(g) != 1 {
		t.Errorf("generations %v are left, want one", g)
	}
}

// TestCommitBesideReader checks that a model that is being read stays until it is closed, and that
// a new reader gets the current model.
func TestCommitBesideReader(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1)
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	save(t, dir, 2)
	table, err := m.OpenTable(t.Context(), sparsetable.Options{})
	if err != nil {
		t.Fatalf("the model that is replaced: %v", err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, dir); got != 2 {
		t.Errorf("model holds %g, want 2", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	save(t, dir, 3)
	if g := names(t, dir); len(g) != 1 {
		t.Errorf("generations %v are left, want one", g)
	}
}

func TestCloseWithoutCommitLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1)
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, w, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, g := value(t, dir), names(t, dir); got != 1 || len(g) != 1 {
		t.Errorf("model holds %g, generations %v", got, g)
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("second writer: %v, want ErrLocked", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	save(t, dir, 1)
}

func TestDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	m := save(t, dir, 1)
	dense := filepath.Join(dir, m.Generation, m.Dense)
	data, err := os.ReadFile(dense)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-6] ^= 1
	if err := os.WriteFile(dense, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var c *CorruptionError
	if _, err := Open(dir); !errors.As(err, &c) || c.File != dense {
		t.Errorf("damaged dense file: %v", err)
	}

	for _, name := range []string{modelfiles.Job, modelfiles.Statistics} {
		m := save(t, dir, 1)
		path := filepath.Join(dir, m.Generation, name)
		if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.As(err, &c) || c.File != path {
			t.Errorf("changed %s: %v", name, err)
		}
	}

	save(t, dir, 1)
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Dense parameters of one instant with the table of another.
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"step": 5`, `"step": 6`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	model, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.OpenTable(context.Background(), sparsetable.Options{}); !errors.As(err, &c) {
		t.Errorf("table of another instant: %v", err)
	}

	if err := os.WriteFile(path, []byte(`{"format_version": 99, "aibox_version": "9"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("newer format: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"format_version": 1, "generation": "../x", "dense": "y"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.As(err, &c) {
		t.Errorf("manifest that points outside: %v", err)
	}
}

// names returns the generations in dir, whether they are complete or not.
func names(t *testing.T, dir string) []string {
	t.Helper()
	all, err := generations(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
