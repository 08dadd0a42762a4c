package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/trainer/generations"
)

// remoteGenerationsOf returns the generations of a remote directory, the newest first.
func remoteGenerationsOf(t *testing.T, uri string) (out []generations.Remote) {
	t.Helper()
	if err := json.Unmarshal([]byte(ok(t, "generations", uri, "--json")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func inspected(t *testing.T, model string) string {
	t.Helper()
	return ok(t, "inspect", "--digest", model)
}

// TestRestoreDirsOfATableInMemory checks that the log says that --dirs is not used if the restored
// model's table is not on SSD.
func TestRestoreDirsOfATableInMemory(t *testing.T) {
	inNightlyJob(t, "output.remote=far/away")
	const says = "the directories for tables are not used"
	if o := aibox("restore", "--from", "far/away", "--to", "new", "--dirs", "c"); o.code != exitDone || !strings.Contains(o.stderr, says) || disk.Exists("c") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
	if o := aibox("restore", "--from", "far/away", "--to", "new2"); o.code != exitDone || strings.Contains(o.stderr, says) {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
}

// TestPublishAndRestore does what a user does whose machine is replaced.
func TestPublishAndRestore(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB, dirs: [a, b]}", "output.remote=far/away")
	uri := absolute(t, "far/away")
	all := remoteGenerationsOf(t, uri)
	if len(all) != 2 || all[0].Generation != 2 || all[0].Night != "2026-11-20" || all[0].StartedFrom != "1" || all[1].StartedFrom != "" || all[0].Job != "nightly-{{date}}" {
		t.Errorf("%+v", all)
	}
	if text := ok(t, "generations", uri); !strings.Contains(text, "2026-11-19") || !strings.Contains(text, "model") {
		t.Errorf("%s", text)
	}
	digest := inspected(t, "model")
	if out := ok(t, "publish", "model"); !strings.Contains(out, "far/away@2 already has the model") {
		t.Errorf("%s", out)
	}
	if out := ok(t, "publish", "model@1", "--to", uri+"2", "--limit", "1GiB"); !strings.Contains(out, "published as "+uri+"2@1") {
		t.Errorf("%s", out)
	}
	// To other directories, and another number of them.
	for i, dirs := range [][]string{nil, {"--dirs", "c"}, {"--dirs", "c", "--dirs", "d", "--dirs", "e"}} {
		to := fmt.Sprint("new", i)
		if out := ok(t, append([]string{"restore", "--from", uri, "--to", to}, dirs...)...); !strings.Contains(out, "is restored to "+to) {
			t.Errorf("%s", out)
		}
		if got := inspected(t, to); got != digest {
			t.Errorf("digest %s, want %s", got, digest)
		}
		if got := ok(t, "eval", "--model-dir", to, "--data", "eval.tsv", "--json"); !strings.Contains(got, `"auc"`) {
			t.Errorf("%s", got)
		}
		ok(t, "table", "verify", to)
	}
	damaged := flipByte(t, "c/new1-gen-*/*.delta")
	if o := aibox("restore", "--from", uri, "--to", "new1", "--dirs", "c"); o.code != exitDone || !strings.Contains(o.stderr, "exists already, but is damaged") || !strings.Contains(o.stderr, damaged) || !strings.Contains(o.stdout, "is restored to new1") {
		t.Errorf("with a damaged file: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	ok(t, "table", "verify", "new1")
	if got := inspected(t, "new1"); got != digest {
		t.Errorf("digest %s, want %s", got, digest)
	}
	if got := ok(t, "restore", "--from", uri+"@1", "--to", "first", "--json"); !strings.Contains(got, `"generation": 1`) {
		t.Errorf("%s", got)
	}
	// The machine is gone; the next night goes on, to the same bits.
	next := []string{"train", "job.yaml", "--date", "2026-11-21", "--set", "sparse_table={kind: ssd, memory_bytes: 16MiB, dirs: [a, b]}"}
	ok(t, next...)
	want := inspected(t, "model")
	for _, gone := range []string{"model", "a", "b"} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	o := aibox(append(next, "--set", "output.remote=far/away")...)
	if o.code != exitDone || !strings.Contains(o.stderr, "the model is restored") || !strings.Contains(o.stdout, "published     far/away@3") {
		t.Fatalf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if got := inspected(t, "model"); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if got := remoteGenerationsOf(t, uri); len(got) != 2 || got[0].Generation != 3 {
		t.Errorf("%+v", got)
	}
	// A job file says where everything is.
	if err := os.Rename("model", "moved"); err != nil {
		t.Fatal(err)
	}
	ok(t, "restore", "job.yaml", "--date", "2026-11-22", "--set", "output.remote=far/away")
	if got := inspected(t, "model"); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if out := ok(t, "restore", "job.yaml", "--date", "2026-11-22", "--set", "output.remote=far/away"); !strings.Contains(out, "model already has the model of far/away@3, and it is intact") {
		t.Errorf("the same command again: %s", out)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"restore --from far/away@2 --to model", exitUsage, "there is a model already"},
		{"restore --from far/away@9 --to x", exitIO, "it has no generation 9; it has 2, 3"},
		{"restore --from nowhere --to x", exitIO, "it does not exist: mount its file system"},
		{"restore --from far/away --to far/away", exitUsage, "far/away is a remote directory"},
		{"restore --from model@1 --to x", exitUsage, "model is a model directory, not a remote directory"},
		{"restore --from far/away --to x --name other", exitIO, `no generation of the job "other"`},
		{"restore --from far/away", exitUsage, "--to"},
		{"restore job.yaml", exitUsage, "--from"},
		{"restore --from far/away --to x --limit 0", exitUsage, "--limit"},
		{"restore --from s3://x/y --to x", exitIO, "unknown scheme"},
		{"publish nothing", exitIO, "no model here"},
		{"publish model@7", exitIO, "no generation 7"},
	} {
		if o := aibox(strings.Fields(c.args)...); o.code != c.code || !strings.Contains(o.stderr, c.says) {
			t.Errorf("aibox %s: exit %d, want %d with %q\n%s", c.args, o.code, c.code, c.says, o.stderr)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a restore that failed has left a directory")
	}
}

// flipByte changes a byte in the middle of the first file that matches a pattern.
func flipByte(t *testing.T, pattern string) (file string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing matches %s: %v", pattern, err)
	}
	data := []byte(read(t, found[0]))
	data[len(data)/2] ^= 1
	write(t, found[0], string(data))
	return found[0]
}

// TestRollbackIsPublished checks that a rollback also affects the remote directory, unless the
// rollback is local or the remote directory cannot be written to.
func TestRollbackIsPublished(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB}", "output.remote=far")
	uri := absolute(t, "far")
	all := remoteGenerationsOf(t, uri)
	shared := int64(0)
	for _, g := range all {
		if g.OwnBytes <= 0 || g.OwnBytes > g.Bytes {
			t.Errorf("%+v", g)
		}
		shared += g.Bytes - g.OwnBytes
	}
	if shared == 0 {
		t.Error("the generations share nothing")
	}
	if text := ok(t, "generations", uri); text != ok(t, "generations", "far") || !strings.Contains(text, "of its own") || !strings.Contains(text, "\nin all: ") {
		t.Errorf("%s", text)
	}
	numbers := func() (out []int) {
		for _, g := range remoteGenerationsOf(t, uri) {
			out = append(out, g.Generation)
		}
		return out
	}
	if out := ok(t, "rollback", "model"); !strings.Contains(out, "published as far@3") || !slices.Equal(numbers(), []int{3, 2}) {
		t.Errorf("%s\n%v", out, numbers())
	}
	if out := ok(t, "rollback", "model", "--to", "2", "--local"); strings.Contains(out, "far") || !slices.Equal(numbers(), []int{3, 2}) {
		t.Errorf("%s\n%v", out, numbers())
	}
	if out := ok(t, "publish", "model"); !strings.Contains(out, "published as far@4") || !slices.Equal(numbers(), []int{4, 3}) {
		t.Errorf("%s\n%v", out, numbers())
	}
	if err := errors.Join(os.Rename("far", "gone"), os.WriteFile("far", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if o := aibox("rollback", "model", "--json"); o.code != exitDone || !strings.Contains(o.stderr, "the newest model in output.remote may be another one") || !strings.Contains(o.stdout, `"published": 1`) {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if err := errors.Join(os.Remove("far"), os.Rename("gone", "far")); err != nil {
		t.Fatal(err)
	}
	if out := ok(t, "rollback", "model", "--to", "1"); !strings.Contains(out, "already") || !slices.Equal(numbers(), []int{5, 4}) {
		t.Errorf("%s\n%v", out, numbers())
	}
}

// TestRollbackIsPublishedAfterFaults checks a rollback that cannot replace a report at the top of the
// model directory, or cannot make sure that it is durable. The command must make the model the
// newest one of the remote directory nevertheless. The first is no error, since the same command
// would go back by another generation.
func TestRollbackIsPublishedAfterFaults(t *testing.T) {
	inNightlyJob(t, "output.remote=far")
	if err := errors.Join(os.Remove("model/summary.json"), os.MkdirAll("model/summary.json/full", 0o755)); err != nil {
		t.Fatal(err)
	}
	o := aibox("rollback", "model")
	if o.code != exitDone || !strings.Contains(o.stderr, "could not be replaced or deleted; the next run tries again") || !strings.Contains(o.stdout, "generation 1 is the model of model now") || !strings.Contains(o.stdout, "published as far@3") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	renamed := false
	diskfault.Inject(func(operation, path string) error {
		if renamed && operation == "sync directory" && path == "model" {
			renamed = false
			return syscall.EIO
		}
		renamed = renamed || operation == "rename" && path == "model/MODEL.json"
		return nil
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	o = aibox("rollback", "model", "--to", "2")
	if o.code != exitIO || !strings.Contains(o.stderr, "generation 2 is the model of model now, but a crash of the machine may undo that; `aibox rollback model --to 2` tries again") || !strings.Contains(o.stdout, "published as far@4") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	wantStates(t, "2 published 2026-11-20 model@1", "1 kept 2026-11-19 ")
}

// TestNotPublished checks that if the remote directory cannot be written to, only the copy is
// missing, not the model. The model is published once the directory can be written to.
func TestNotPublished(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", smallJob)
	ok(t, "generate", "job.yaml")
	write(t, "far", "a file, where a directory should be")
	o := aibox("train", "job.yaml", "--set", "output.remote=far")
	if o.code != exitDone || !strings.Contains(o.stderr, "not published") || !strings.Contains(o.stdout, "not published") {
		t.Fatalf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if o := aibox("publish", "model"); o.code != exitIO {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
	report, err := os.ReadFile("model/remote.json")
	if err != nil || !strings.Contains(string(report), `"error"`) {
		t.Errorf("%s, %v", report, err)
	}
	if err := os.Remove("far"); err != nil {
		t.Fatal(err)
	}
	ok(t, "publish", "model")
	if got := remoteGenerationsOf(t, absolute(t, "far")); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	// Where the disk of the model directory is not mounted, it is not output.remote that fails.
	if err := os.Symlink("not/mounted", "link"); err != nil {
		t.Fatal(err)
	}
	o = aibox("train", "job.yaml", "--set", "output.model_dir=link", "--set", "training.warm_start=latest", "--set", "output.remote=far")
	if o.code != exitIO || !strings.Contains(o.stderr, "one that output.remote may have cannot be restored: model directory: link is a symbolic link") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
	// A job that goes on from the newest model does not begin anew where it cannot look.
	if err := os.RemoveAll("far"); err != nil {
		t.Fatal(err)
	}
	latest := []string{"train", "job.yaml", "--set", "output.model_dir=other", "--set", "training.warm_start=latest", "--set", "output.remote=hdfs://localhost:1/x", "--set", "data.hdfs.retry_ms=0"}
	if o := aibox(latest...); o.code != exitIO || !strings.Contains(o.stderr, "one that output.remote may have cannot be restored: ") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
}

// absolute returns the URI of a local path.
func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + abs
}

// TestRemoteKilled repeatedly kills the program while it publishes and while it restores, at seeded
// moments, until it is done. The model must be the same.
func TestRemoteKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: builds the program; not in short mode")
	}
	b := &binary{t: t, path: buildBinary(t)}
	inKillJob(t, b)
	n, rng := kills(t)
	want := inspected(t, "model")
	// until starts a command and kills it until it ended by itself or has made its file.
	until := func(made string, args ...string) {
		t.Helper()
		for range n {
			_, ended := b.kill(time.Duration(rng.Int64N(int64(400*time.Millisecond))), args...)
			if ended || made != "" && disk.Exists(made) { // a process may be killed when all is done and it has not ended yet
				return
			}
		}
		if o := b.run(args...); o.code != exitDone {
			t.Fatalf("aibox %s: exit %d\n%s", strings.Join(args, " "), o.code, o.stderr)
		}
	}
	until("", "publish", "model", "--to", "far", "--limit", "20MiB")
	if left, err := filepath.Glob("far/pending/*"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	until("again/MODEL.json", "restore", "--from", "far", "--to", "again", "--dirs", "c", "--dirs", "d", "--limit", "20MiB")
	if got := inspected(t, "again"); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	for _, dir := range []string{"c", "d"} {
		if tables, err := os.ReadDir(dir); err != nil || len(tables) != 1 {
			t.Errorf("%s holds %v, %v", dir, tables, err)
		}
	}
}
