package trainer

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeltable"
)

// TestWarmStartClones: from night to night, tables on SSD share the files that did not
// change. The models are those of tables in memory, also where the kind of table or the format of
// its rows changes on the way, so that rows are copied.
func TestWarmStartClones(t *testing.T) {
	at := t.TempDir()
	dirs := "sparse_table.dirs=[" + filepath.Join(at, "a") + "," + filepath.Join(at, "b") + "]"
	early := []string{"training.epochs=3", "training.early_stopping.patience=1", "optimizer.rows.learning_rate=2"} // goes back to an earlier epoch
	nights := []struct {
		set    []string // of the job
		ssd    []string // and where its table is on SSD
		shares bool     // files with the night before
	}{
		{set: []string{"data.train=[LOG/train-0.tsv]"}},
		{set: []string{"data.train=[LOG/train-1.tsv.gz]"}, shares: true},
		{set: early, ssd: []string{dirs}, shares: true},
		{set: []string{"sparse_table.value_format=bfloat16"}, ssd: []string{dirs}},
		{set: []string{"sparse_table.value_format=bfloat16"}, ssd: []string{dirs}, shares: true},
		{set: []string{"sparse_table.value_format=bfloat16"}, ssd: []string{"sparse_table.kind=memory"}},
		{set: []string{"sparse_table.value_format=bfloat16", "sparse_table.expiry.unseen_days=1"}},
	}
	before, beforeSSD := "", ""
	for i, night := range nights {
		night.set = append(night.set, "training.accept_diverged=true")
		inMemory := job(t, "fm", night.set...)
		inMemory.Training.WarmStart = before
		want := train(t, inMemory)
		onDisk := job(t, "fm", onSSD(append(night.set, night.ssd...)...)...)
		onDisk.Training.WarmStart = beforeSSD
		var log bytes.Buffer
		if _, err := Train(t.Context(), onDisk, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(err)
		}
		if got := testjobs.Digest(t, onDisk); got != want.Digest {
			t.Errorf("night %d: digest %s, in memory %s", i, got, want.Digest)
		}
		shares := strings.Contains(log.String(), " copied_bytes=0 ") && !strings.Contains(log.String(), " shared_bytes=0 ")
		if shares != night.shares {
			t.Errorf("night %d: that it shares files is %v; it logs %s", i, shares, &log)
		}
		table, err := modeltable.Find(onDisk.Output.ModelDir)
		if err != nil {
			t.Fatal(err)
		}
		if table.Options.Kind == sparsetable.KindSSD {
			open, err := table.Model.OpenTable(t.Context(), table.Options)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := open.Snapshots(); err != nil || len(s) != 1 {
				t.Errorf("night %d keeps the snapshots %v, %v", i, s, err)
			}
			if err := open.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Model.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // a night does not need the one before it
			if err := os.RemoveAll(beforeSSD); err != nil {
				t.Fatal(err)
			}
		}
		before, beforeSSD = inMemory.Output.ModelDir, onDisk.Output.ModelDir
	}
}

// TestLatestSharesFiles: the generations of a model directory are clones of one another, and
// each can be read, until it is deleted.
func TestLatestSharesFiles(t *testing.T) {
	inMemory, _ := newChain(t, "AT/model")
	at := t.TempDir()
	onDisk, dir := newChain(t, "AT/model", onSSD("sparse_table.dirs=["+filepath.Join(at, "a")+","+filepath.Join(at, "b")+"]")...)
	digests := make(map[string]string)
	for n, date := range []string{"2026-11-01", "2026-11-02", "2026-11-04", "2026-11-05"} {
		s, err := inMemory.night(date)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := onDisk.night(date); err != nil {
			t.Fatal(err)
		}
		if shares := strings.Contains(onDisk.log.String(), " shared_bytes="); shares != (n > 0) {
			t.Errorf("the night %s shares files: %v", date, shares)
		}
		digests[fmt.Sprint(dir, "/model@", n+1)] = s.Digest
		for _, d := range []string{"a", "b"} {
			if tables, err := filepath.Glob(filepath.Join(at, d, "model-gen-*")); err != nil || len(tables) != min(n+1, 2) {
				t.Errorf("after the night %s, %s holds %v, %v", date, d, tables, err)
			}
		}
		for name, want := range digests {
			in, err := inference.Inspect(t.Context(), name, true, inference.Options{})
			if kept := strings.HasSuffix(name, fmt.Sprint("@", n+1)) || strings.HasSuffix(name, fmt.Sprint("@", n)); !kept {
				if err == nil {
					t.Errorf("%s is still there", name)
				}
			} else if err != nil || in.Digest != want {
				t.Errorf("%s: digest %v, want %s: %v", name, in, want, err)
			}
		}
	}
}
