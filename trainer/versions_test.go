package trainer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// rewrite replaces what a file has by what change makes of it.
func rewrite(t *testing.T, pattern string, change func(data []byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	path := paths[len(paths)-1]
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// resealed replaces old by new in the part of a JSON file of which the file has the SHA-256.
func resealed(t *testing.T, part, old, new string) func(data []byte) []byte {
	return func(data []byte) []byte {
		t.Helper()
		var f map[string]json.RawMessage
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		var plain bytes.Buffer
		if err := json.Compact(&plain, f[part]); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(plain.String(), old, new, 1)
		if text == plain.String() {
			t.Fatalf("there is no %s in %s", old, text)
		}
		return fmt.Appendf(nil, `{"sha256": "%x", %q: %s}`, sha256.Sum256([]byte(text)), part, text)
	}
}

// TestInterruptedByAnotherVersion: where another version of aibox goes on with a run, its log and
// its summary say so; and what a newer one has saved in another form is not taken for damaged.
func TestInterruptedByAnotherVersion(t *testing.T) {
	const other, format = "another version of aibox saved the snapshot", "has the format of another version of aibox; training starts over"
	undisturbed := job(t, "deepfm")
	train(t, undisturbed)
	want := testjobs.Digest(t, undisturbed)
	for name, c := range map[string]struct {
		version string
		change  func(dir string)
		says    string
		resumed []string // versions
	}{
		"same":  {version: "test", resumed: []string{"test"}},
		"other": {version: "later", says: other, resumed: []string{"test"}},
		"newer state": {version: "test", says: format, change: func(dir string) {
			rewrite(t, dir+"/gen-*/RESUME.json", resealed(t, "resume", `"passes":`, `"what":1,"passes":`))
		}},
		"newer record": {version: "test", says: format, change: func(dir string) {
			rewrite(t, dir+"/gen-*/RESUME.json", resealed(t, "resume", `"format":2`, `"format":3`))
		}},
		"newer table": {version: "test", says: format, change: func(dir string) {
			rewrite(t, dir+"/gen-*/table/snapshot-*.rows", func(data []byte) []byte {
				le := binary.LittleEndian
				le.PutUint32(data[8:], 3)
				end := 32 + le.Uint32(data[20:])
				le.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
				return data
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t, "deepfm", everyPass)
			if !killedAt(t, j, 3, true) {
				t.Fatal("it was not killed")
			}
			if c.change != nil {
				c.change(j.Output.ModelDir)
			}
			var log bytes.Buffer
			s, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Version: c.version})
			if err != nil {
				t.Fatal(err)
			}
			if got := testjobs.Digest(t, j); got != want {
				t.Errorf("digest %s, want %s", got, want)
			}
			var resumed []string
			for _, r := range s.Resumed {
				resumed = append(resumed, r.AiboxVersion)
			}
			if fmt.Sprint(resumed) != fmt.Sprint(c.resumed) {
				t.Errorf("resumed: %+v", s.Resumed)
			}
			for _, text := range []string{other, format, "damaged"} {
				if has := strings.Contains(log.String(), text); has != (text == c.says) {
					t.Errorf("the log says %q: %v:\n%s", text, has, log.String())
				}
			}
		})
	}
}

// TestModelOfANewerVersionRemotely: where the newest model in output.remote was published by a
// newer version of aibox, no night begins with a new model, or goes on from an older one, which
// would be the newest model there then.
func TestModelOfANewerVersionRemotely(t *testing.T) {
	at := t.TempDir() + "/remote"
	newer := func() { // the newest is
		rewrite(t, at+"/generations/*.json", resealed(t, "manifest", `"format_version":1`, fmt.Sprintf(`"format_version":%d`, remote.FormatVersion+1)))
	}
	refused := func(date string) {
		t.Helper()
		m := newMachine(t, "file://"+at)
		if _, err := m.train(date); !errors.Is(err, errkind.ErrNewer) {
			t.Errorf("%s: %v", date, err)
		}
		if _, err := modeldir.Generations(m.at + "/model"); !errors.Is(err, modeldir.ErrNoModel) {
			t.Errorf("%s: there is a model: %v", date, err)
		}
	}
	home := newMachine(t, "file://"+at)
	home.night("2026-11-21")
	newer()
	refused("2026-11-22")
	home.night("2026-11-22")
	home.said("this one deletes no files there")
	if s := newMachine(t, "file://"+at).night("2026-11-23"); s.WarmStart == "" { // which is a newer model
		t.Error("the night began with a new model")
	}
	newer()
	refused("2026-11-24")
}

// TestModelOfANewerVersion: of a model whose job has a key that this version does not know, it is
// not said that a job file is wrong.
func TestModelOfANewerVersion(t *testing.T) {
	j := job(t, "deepfm")
	train(t, j)
	text := []byte("what_is_new: 1\n")
	rewrite(t, j.Output.ModelDir+"/gen-*/job.yaml", func(data []byte) []byte {
		text = append(data, text...)
		return text
	})
	rewrite(t, j.Output.ModelDir+"/MODEL.json", func(data []byte) []byte {
		var m modeldir.Manifest
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		m.JobSHA256, m.AiboxVersion = fmt.Sprintf("%x", sha256.Sum256(text)), "v99"
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	})
	next := job(t, "deepfm", "training.warm_start="+j.Output.ModelDir)
	_, err := Train(t.Context(), next, quiet)
	if kind, _ := errkind.Find(err); kind != errkind.IO || !strings.Contains(err.Error(), "saved by aibox v99") || !strings.Contains(err.Error(), "what_is_new") {
		t.Error(err)
	}
}
