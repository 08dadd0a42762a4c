package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/trainer/generations"
)

// verified is the output of `aibox inspect` for a remote directory, or for a model there, and its
// exit code.
func verified(t *testing.T, uri string) (v generations.Verified, code int) {
	t.Helper()
	o := aibox("inspect", uri, "--json")
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		t.Fatalf("%v\n%s%s", err, o.stdout, o.stderr)
	}
	return v, o.code
}

// TestInspectRemote does what a user does to find out whether what was published can be restored:
// finds the damaged files and the models that need them, and repairs them from the model directory.
// No number of a generation may change.
func TestInspectRemote(t *testing.T) {
	const odd = "far and/so on%41 ü@3" // which ends like the name of a generation
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB, dirs: [a, b]}", "output.remote="+odd)
	before := remoteGenerationsOf(t, odd)
	if out := ok(t, "inspect", odd); !strings.Contains(out, "verified, no faults") || !strings.Contains(out, "2026-11-19") {
		t.Errorf("%s", out)
	}
	v, code := verified(t, odd)
	if code != exitDone || len(v.Generations) != 2 || len(v.Faults) != 0 || v.Files == 0 || v.TotalBytes == 0 {
		t.Errorf("exit %d, %+v", code, v)
	}
	objects, err := filepath.Glob(odd + "/objects/*")
	if err != nil {
		t.Fatal(err)
	}
	ofFirst, shared := 0, 0
	for i, object := range objects {
		good := read(t, object)
		switch i % 3 {
		case 0:
			if err := os.Remove(object); err != nil {
				t.Fatal(err)
			}
		case 1:
			write(t, object, good[1:])
		case 2:
			flipByte(t, filepath.Join("far*", "*", "objects", filepath.Base(object)))
		}
		v, code := verified(t, odd)
		if code != exitIO || len(v.Faults) != 1 || v.Faults[0].URI != odd+"/objects/"+filepath.Base(object) || len(v.Faults[0].NeededBy) == 0 {
			t.Fatalf("exit %d, %+v", code, v)
		}
		var numbers []int
		for _, n := range v.Faults[0].NeededBy {
			numbers = append(numbers, n.Generation)
		}
		for _, g := range v.Generations {
			if slices.Contains(numbers, g.Generation) != g.Damaged {
				t.Errorf("%s: needed by %v: %+v", object, numbers, g)
			}
			if _, code := verified(t, odd+"@"+string(rune('0'+g.Generation))); code != map[bool]int{true: exitIO, false: exitDone}[g.Damaged] {
				t.Errorf("%s: generation %d: exit %d", object, g.Generation, code)
			}
		}
		model := "model"
		if !slices.Contains(numbers, 2) {
			model = "model@1"
			ofFirst++
		} else if slices.Contains(numbers, 1) {
			shared++
		}
		if out := ok(t, "publish", "--verify", model); !strings.Contains(out, "already has the model") || !strings.Contains(out, "were uploaded again") {
			t.Errorf("%s: %s", object, out)
		}
		if read(t, object) != good {
			t.Fatalf("%s is not what it was", object)
		}
	}
	if ofFirst == 0 || shared == 0 {
		t.Errorf("%d files of the first model alone, and %d of both", ofFirst, shared)
	}
	if after := remoteGenerationsOf(t, odd); !slices.Equal(before, after) {
		t.Errorf("%+v, but there were %+v", after, before)
	}
	if out := ok(t, "publish", "--verify", "model"); strings.Contains(out, "again") {
		t.Errorf("%s", out)
	}
}

// TestInspectRemoteSays checks that the output lists the faults with the models that need the
// files, and that the error at the end says what to do.
func TestInspectRemoteSays(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB}", "output.remote=far")
	uri := absolute(t, "far")
	objects, err := filepath.Glob("far/objects/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		flipByte(t, object)
	}
	o := aibox("inspect", uri)
	for _, want := range []string{"published, damaged", uri + "/objects/" + filepath.Base(objects[0]) + ": its SHA-256 is", "; needed as dense-", " of generation 1", "of generation 2"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("the output does not say %q:\n%s", want, o.stdout)
		}
	}
	if o.code != exitIO || !strings.Contains(o.stderr, "Models that have such files: 1, 2. `aibox publish --verify`") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
	ok(t, "publish", "--verify", "model@1")
	ok(t, "publish", "--verify", "model")
	ok(t, "inspect", uri)
	manifests, err := filepath.Glob("far/generations/000001-*")
	if err != nil || len(manifests) != 1 {
		t.Fatal(err, manifests)
	}
	flipByte(t, manifests[0])
	if o := aibox("inspect", uri); o.code != exitIO || !strings.Contains(o.stdout, manifests[0]) || !strings.Contains(o.stderr, "1 file is missing") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	for _, name := range []string{uri + "@99", uri + "/nowhere"} {
		if o := aibox("inspect", name); o.code != exitIO {
			t.Errorf("%s: exit %d\n%s", name, o.code, o.stderr)
		}
	}
	if o := aibox("inspect", "--digest", uri); o.code != exitUsage || !strings.Contains(o.stderr, "--digest is for a model directory") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
}
