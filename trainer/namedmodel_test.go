package trainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
)

// fromModel is a job in a new directory that starts from the model called start.
func fromModel(t *testing.T, start, remote string) *configs.Job {
	t.Helper()
	return job(t, "fm", onTwoDisks("snapshots.every=none", "training.epochs=1", "training.warm_start="+start, `output.remote="`+remote+`"`)...)
}

// TestNamedModelLosesDirectory checks that a night that starts from a model by its name, whose
// table has lost a directory, restores that very model from output.remote for its own use, and
// makes the same model as otherwise. The named model is not changed.
func TestNamedModelLosesDirectory(t *testing.T) {
	for i, way := range []string{"new disk", "unreadable", "not mounted", "files gone"} {
		t.Run(way, func(t *testing.T) {
			remote := "file://" + t.TempDir()
			first := job(t, "fm", onTwoDisks("snapshots.every=none", "training.epochs=1", "output.remote="+remote, "output.keep_generations=3")...)
			train(t, first)
			first.Training.WarmStart = configs.WarmStartLatest
			train(t, first) // the newest model there is another one
			start := first.Output.ModelDir + "@1"
			want := train(t, fromModel(t, start, "")).Digest
			loseIn(t, first.SparseTable.Dirs[i%2], "*-gen-000001-*", way)
			j := fromModel(t, start, remote)
			s, said := trainAloud(t, j)
			if got := testjobs.Digest(t, j); got != want || len(s.Recoveries) != 1 || s.Recoveries[0].From != start || s.WarmStart != start {
				t.Errorf("digest %s, want %s; started from %s, recoveries %+v\n%s", got, want, s.WarmStart, s.Recoveries, said)
			}
			if s.Arrival == nil || s.Arrival.Remote != remote || s.Arrival.FetchedBytes == 0 {
				t.Errorf("what was fetched: %+v", s.Arrival)
			}
			if !strings.Contains(said, "restored from output.remote for this run") {
				t.Errorf("it does not say so:\n%s", said)
			}
			if all, err := modeldir.Generations(first.Output.ModelDir); err != nil || len(all) != 2 {
				t.Errorf("the model directory has %+v, %v", all, err)
			}
			if left := entriesOf(t, filepath.Join(j.Output.ModelDir, "start")) + entriesOf(t, filepath.Join(filepath.Dir(j.Output.ModelDir), "*", "start-*")); left != "" {
				t.Errorf("left of the restored model: %s", left)
			}
		})
	}
}

// TestNamedModelLosesDirectoryForGood checks that if output.remote does not have the very same
// model, the night ends with an error that says what was lost and what to do.
func TestNamedModelLosesDirectoryForGood(t *testing.T) {
	remote := "file://" + t.TempDir()
	first := job(t, "fm", onTwoDisks("snapshots.every=none", "training.epochs=1")...)
	train(t, first)
	other := job(t, "fm", onTwoDisks("snapshots.every=none", "training.epochs=1", "output.remote="+remote)...)
	train(t, other)
	lose(t, first, 1, "new disk")
	for uri, why := range map[string]string{"": "no output.remote", remote: "has no complete copy of that model"} {
		_, err := Train(t.Context(), fromModel(t, first.Output.ModelDir, uri), quiet)
		if errkind.Of(t.Context(), err) != errkind.IO {
			t.Errorf("remote %q: %v", uri, err)
		}
		for _, text := range []string{"training.warm_start: ", "has lost " + first.SparseTable.Dirs[1], "mount the missing file system", why} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("remote %q: the error does not say %q: %v", uri, text, err)
			}
		}
	}
}

// TestModelLosesItsCatalogAlone checks that a model that has lost only the catalog of its table, of
// which another directory has a copy, can be used as before: by eval, inspect, the table commands,
// and as a start, by its name or as the latest one.
func TestModelLosesItsCatalogAlone(t *testing.T) {
	first := job(t, "fm", onTwoDisks("snapshots.every=none", "training.epochs=1")...)
	digest := train(t, first).Digest
	eval, err := load(t, first.Output.ModelDir).Evaluate(t.Context(), first.Data.Eval)
	if err != nil {
		t.Fatal(err)
	}
	want := train(t, fromModel(t, first.Output.ModelDir, "")).Digest
	catalogs, err := filepath.Glob(filepath.Join(first.SparseTable.Dirs[0], "*", "catalog"))
	if err != nil || len(catalogs) != 1 {
		t.Fatalf("there are %v, %v", catalogs, err)
	}
	if err := os.RemoveAll(catalogs[0]); err != nil {
		t.Fatal(err)
	}
	if got := testjobs.Digest(t, first); got != digest {
		t.Errorf("digest %s, was %s", got, digest)
	}
	if got, err := load(t, first.Output.ModelDir).Evaluate(t.Context(), first.Data.Eval); err != nil || fmt.Sprint(got.Metrics) != fmt.Sprint(eval.Metrics) {
		t.Errorf("eval: %+v, was %+v; %v", got, eval, err)
	}
	table, err := modeltable.Find(first.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(table.Model.CheckTable(t.Context(), quiet.Logger), table.Model.Close()); err != nil {
		t.Error(err)
	}
	if got := train(t, fromModel(t, first.Output.ModelDir, "")).Digest; got != want {
		t.Errorf("the next night has the digest %s, want %s", got, want)
	}
	first.Training.WarmStart = configs.WarmStartLatest
	if got := train(t, first).Digest; got != want {
		t.Errorf("the next night has the digest %s, want %s", got, want)
	}
}
