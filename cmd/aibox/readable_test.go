package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aibox/sparsetable/tabletest"
)

// TestReadable runs the program as users do: evaluations, one after the other in several processes,
// beside a nightly job that trains the model, commits it and deletes the previous generation. Every
// evaluation must find a model, and nothing may be left of the earlier ones.
func TestReadable(t *testing.T) {
	path := buildBinary(t)
	for name, set := range map[string][]string{
		"memory":      {"sparse_table.kind=memory", "sparse_table.memory_bytes=1GiB"},
		"ssd":         {"sparse_table.kind=ssd"},
		"directories": {"sparse_table.dirs=[a, b]"},
	} {
		t.Run(name, func(t *testing.T) { readBesideRetrains(t, &binary{t, path}, set) })
	}
}

func readBesideRetrains(t *testing.T, b *binary, set []string) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	train := []string{"train", "job.yaml", "--set", "output.keep_generations=1"}
	for _, s := range set {
		train = append(train, "--set", s)
	}
	if o := b.run(train...); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	readings := [][]string{
		{"eval", "--model-dir", "model", "--data", "eval.tsv"},
		{"predict", "--model-dir", "model", "--data", "eval.tsv", "--output", "scores.csv"},
		{"inspect", "--digest", "model"},
		{"table", "stats", "model"},
		{"table", "verify", "model"},
	}
	var done atomic.Bool
	var read atomic.Int64
	var readers sync.WaitGroup
	for _, args := range readings {
		readers.Go(func() {
			for !done.Load() {
				if o := b.run(args...); o.code != exitDone {
					t.Errorf("%v: exit %d\n%s", args, o.code, o.stderr)
				}
				read.Add(1)
			}
		})
	}
	retrains := tabletest.Kills(t, 8, 3)
	for range retrains {
		if o := b.run(train...); o.code != exitDone {
			t.Errorf("exit %d\n%s", o.code, o.stderr)
			break
		}
	}
	done.Store(true)
	readers.Wait()
	t.Logf("%d readings beside %d retrains", read.Load(), retrains)
	// What a reader kept from being deleted the next run deletes.
	if o := b.run(train...); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	for _, pattern := range []string{"model/gen-*", "a/*", "b/*"} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 1 {
			t.Errorf("%s: %v: %v", pattern, left, err)
		}
	}
	if _, err := os.Stat("scores.csv"); err != nil {
		t.Error(err)
	}
}

// TestHotDamage damages the copies of rows whose only purpose is to save time at a start. The model
// must be usable, and inspect must find the damage.
func TestHotDamage(t *testing.T) {
	inTables(t)
	ok(t, "table", "compact", "ssd", "--min-gain", "0.0001") // which leaves no row outside of buckets
	want := ok(t, "inspect", "--digest", "ssd")
	files, err := filepath.Glob(filepath.Join(placeOf(t, "a"), "*.delta"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data := read(t, files[0])
	write(t, files[0], data[:len(data)/2]+string(data[len(data)/2]^1)+data[len(data)/2+1:])
	for _, args := range [][]string{{"eval", "--model-dir", "ssd", "--data", "eval.tsv"}, {"inspect", "--digest", "ssd"}} {
		// It may end before the copies are read, and then has nothing to warn of.
		if o := aibox(args...); o.code != exitDone {
			t.Errorf("%v: exit %d: %s", args, o.code, o.stderr)
		}
	}
	if have := ok(t, "inspect", "--digest", "ssd"); have != want {
		t.Errorf("digest %s, want %s", have, want)
	}
	if o := aibox("inspect", "ssd"); o.code != exitIO || !strings.Contains(o.stdout, strings.TrimSpace(want)) || !strings.Contains(o.stdout, filepath.Base(files[0])) {
		t.Errorf("inspect: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}
