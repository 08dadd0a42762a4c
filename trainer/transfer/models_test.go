package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
	"aibox/trainer/tensorfile"
)

var quiet = Options{Logger: silent, Version: "test"}

// makeModel makes a model in a model directory, from the one that is there if there is one. Its job
// publishes to uri.
func makeModel(t *testing.T, dir, uri string) *modeldir.Manifest {
	t.Helper()
	from := modeldir.Origin{}
	if m, err := modeldir.Open(dir); err == nil {
		from = modeldir.Origin{Generation: m.Generation, Identity: m.Identity()}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return makeModelFrom(t, dir, uri, from)
}

func makeModelFrom(t *testing.T, dir, uri string, from modeldir.Origin) *modeldir.Manifest {
	t.Helper()
	w, err := modeldir.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	w.Keep = 9
	m := &modeldir.Manifest{Dense: modeldir.DenseName(5), Step: 5, KeptShare: 1, Job: "x", StartedFrom: from}
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{Dir: w.TableDir(), Layout: sparsetable.Layout{ValueDim: 1}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := table.Pull(t.Context(), []uint64{7}, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	rows.Release()
	p, err := table.Snapshot(t.Context(), m.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err = errors.Join(err, table.Close(), w.SaveDense(m.Dense, []tensorfile.Tensor{{Name: "w", Shape: []int{1}, Data: []float32{1}}})); err != nil {
		t.Fatal(err)
	}
	m.TableSnapshot = info.ID
	job := fmt.Sprintf("name: x\ndata: {train: [x.tsv], format: criteo}\nmodel: {kind: lr}\noutput: {model_dir: %q, remote: %q, remote_keep_generations: 3}\n", dir, uri)
	if err := w.Commit(m, []byte(job), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return m
}

// openStore opens a remote directory that lies in a store, under another name.
func openStore(uri string, store remote.Store) *remote.Directory {
	return remote.Open(uri, store, remote.Options{Logger: silent})
}

// emptyRemote empties a remote directory, or removes it.
func emptyRemote(t *testing.T, dir string, remove bool) {
	t.Helper()
	err := os.RemoveAll(dir)
	if !remove {
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func model(t *testing.T) (dir string) { return filepath.Join(t.TempDir(), "model") }
