package trainer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aibox/configs"
	"aibox/internal/testseed"
)

// TestUploadRatio: where a tenth or a hundredth of the rows changes between two snapshots, each
// uploads at most 1.2 times these rows with their keys. Its manifest takes little beside them.
func TestUploadRatio(t *testing.T) {
	const (
		columns, values = 20, 2500
		tenths, percent = 2, 8 // passes of these shares, after one that has all rows
		mostManifest    = 32 << 10
	)
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	var log bytes.Buffer
	changed := []int{values}
	for range tenths {
		changed = append(changed, values/10)
	}
	for range percent {
		changed = append(changed, values/100)
	}
	for _, distinct := range changed {
		var draws [columns][]int
		for c := range draws {
			draws[c] = rng.Perm(values)[:distinct]
		}
		for i := range values { // a pass
			fmt.Fprint(&log, i%2)
			for c := range draws {
				fmt.Fprintf(&log, "\t%x", draws[c][i%distinct]*columns+c)
			}
			fmt.Fprintln(&log)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.tsv"), log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	list := "    - {name: label, role: label}\n"
	for c := range columns {
		list += fmt.Sprintf("    - {name: c%d, role: sparse}\n", c)
	}
	j, err := configs.Parse("test.yaml", fmt.Appendf(nil, `name: ratio
output: {model_dir: %[1]s/model}
data:
  train: [%[1]s/log.tsv]
  format: tsv
  header: false
  columns:
%[2]s
model: {kind: fm, embedding_dim: 16}
training: {batch_size: 500, accept_diverged: true}
pipeline: {batches_per_pass: 5}
sparse_table: {kind: ssd, memory_bytes: 64MiB}
snapshots: {every: 1 pass, remote: %[1]s/remote, remote_every: 1 snapshot}
`, dir, list), configs.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "remote"), 0o700); err != nil {
		t.Fatal(err)
	}
	opts := quiet
	uploaded, pass := int64(0), -1 // the pass of the last snapshot
	opts.afterPass = func(ctx context.Context, r *run) error {
		if pass++; pass == 0 {
			return nil
		}
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		now := r.snapshots.uploads.Summary().UploadedBytes
		up, rows := now-uploaded, int64(changed[pass-1]*columns)
		want := rows * int64(8+r.Layout.Bytes())
		t.Logf("pass %d: %d rows, %d bytes, %d uploaded, %.2f times as many", pass-1, rows, want, up, float64(up)/float64(want))
		if float64(up) > 1.2*float64(want) || up < want {
			t.Errorf("pass %d: %d rows of %d bytes have changed, %d bytes were uploaded", pass-1, rows, want, up)
		}
		all, err := filepath.Glob(filepath.Join(dir, "remote", "snapshots", "*.json"))
		if err != nil || len(all) == 0 {
			t.Errorf("%d manifests, %v", len(all), err)
		}
		for _, path := range all {
			if info, err := os.Stat(path); err != nil || info.Size() > mostManifest {
				t.Errorf("pass %d: a manifest has %d bytes, %v", pass-1, info.Size(), err)
			}
		}
		uploaded = now
		return nil
	}
	if _, err := Train(t.Context(), j, opts); err != nil {
		t.Fatal(err)
	}
	if pass != len(changed)-1 {
		t.Errorf("the last pass was %d of %d", pass, len(changed))
	}
}
