package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aibox/internal/errkind"
)

// published returns a store with one generation.
func published(t *testing.T, o Options) (*memStore, *Directory, *Manifest, contents) {
	t.Helper()
	s := newMemStore()
	d := Open("mem", s, o)
	c := night("a", 4)
	if _, err := d.Publish(t.Context(), c.publication("a", 4)); err != nil {
		t.Fatal(err)
	}
	return s, d, wantGenerations(t, d, 4)[0], c
}

// TestFetchContinues ends a fetch at each operation of the store. The next fetch must not fetch
// again what is there already, including the first bytes of incomplete files.
func TestFetchContinues(t *testing.T) {
	s, d, m, c := published(t, quiet)
	least := m.Bytes()
	for n := 0; ; n++ {
		dir := t.TempDir()
		dying := &faultyStore{memStore: s, fail: func(op int) (bool, bool) { return op >= n, false }}
		_, err := fetch(t, Open("mem", dying, quiet), m, dir)
		if err == nil {
			break
		}
		if !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		out, err := fetch(t, d, m, dir)
		if err != nil {
			t.Fatal(err)
		}
		wantFetched(t, dir, c)
		least = min(least, out.Moved)
	}
	if least > m.Bytes()/2 { // the last operation was the only one that failed
		t.Errorf("of %d bytes, %d are fetched again", m.Bytes(), least)
	}
}

// TestFetchBegun checks that the bytes of an incomplete file are verified before they are used.
func TestFetchBegun(t *testing.T) {
	_, d, m, c := published(t, quiet)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "table"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := c["dense"]
	wrong := text[:150] + "?" + text[151:] + "and more"
	if err := os.WriteFile(filepath.Join(dir, "dense"+PartSuffix), []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := fetch(t, d, m, dir)
	if err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, c)
	if have := out.Bytes - out.Moved; have != int64(len(text)-100) {
		t.Errorf("%d bytes of the file are not fetched again, want all but the second part", have)
	}
}

// TestFetchDamaged checks that a damaged object is fetched again. If it is still damaged, fetching
// fails with an error that names the object.
func TestFetchDamaged(t *testing.T) {
	var log bytes.Buffer
	o := quiet
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, d, m, c := published(t, o)
	for _, name := range s.names(objectsDir) {
		name := path.Join(objectsDir, name)
		good := s.files[name]
		wrong := bytes.Clone(good.data)
		wrong[len(wrong)/2] ^= 1
		for what, damage := range map[string]func(){
			"changed": func() { s.files[name] = memFile{data: wrong} },
			"missing": func() { delete(s.files, name) },
			"short":   func() { s.files[name] = memFile{data: good.data[:len(good.data)-1]} },
		} {
			damage()
			_, err := fetch(t, d, m, t.TempDir())
			var damaged *DamagedError
			if !errors.As(err, &damaged) || !strings.Contains(damaged.URI, name) {
				t.Errorf("%s is %s: %v", name, what, err)
			}
			// It is good again at the second attempt.
			damage()
			dir := t.TempDir()
			h := Open("mem", &healingStore{memStore: s, name: name, good: good}, o)
			out, err := fetch(t, h, m, dir)
			if err != nil || out.Again != 1 {
				t.Fatalf("%s is %s at first: %+v, %v", name, what, out, err)
			}
			wantFetched(t, dir, c)
			s.files[name] = good
		}
	}
	if !strings.Contains(log.String(), "fetched again") {
		t.Error("the log does not say that a file is fetched again")
	}
}

// TestManifestDamaged checks that every changed byte of a manifest is detected, apart from white
// space.
func TestManifestDamaged(t *testing.T) {
	for _, version := range []int{plainVersion, FormatVersion} {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testManifestDamaged(t, version) })
	}
}

func testManifestDamaged(t *testing.T, version int) {
	_, _, m, _ := published(t, quiet)
	m.FormatVersion = version
	data, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := decode(data); err != nil || again.ID != m.ID || len(again.Files) != len(m.Files) {
		t.Fatal(err)
	}
	for i := range data {
		for _, b := range []byte{data[i] ^ 1, data[i] ^ 0x20, 'x'} {
			wrong := bytes.Clone(data)
			wrong[i] = b
			if got, err := decode(wrong); err == nil {
				same, _ := got.encode()
				if !bytes.Equal(same, data) {
					t.Errorf("byte %d: %q became %q unnoticed", i, data[i], b)
				}
			}
		}
		if _, err := decode(data[:i]); err == nil && i < len(data)-1 { // the end of the last line
			t.Errorf("%d of %d bytes are taken for a manifest", i, len(data))
		}
	}
	for what, change := range map[string]func(m *Manifest){
		"newer":         func(m *Manifest) { m.FormatVersion = FormatVersion + 1 },
		"no number":     func(m *Manifest) { m.Number = 0 },
		"no id":         func(m *Manifest) { m.ID = "../x" },
		"outside":       func(m *Manifest) { m.Files[0].Name = "../x" },
		"absolute":      func(m *Manifest) { m.Files[0].Name = "/x" },
		"inside itself": func(m *Manifest) { m.Files[0].Name = "a/../b" },
		"no object":     func(m *Manifest) { m.Files[0].Parts[0].Object = "../../x" },
		"hidden object": func(m *Manifest) { m.Files[0].Parts[0].Object = "." + objectOf(m.ID, 1) + "./../../x.tmp" },
		"other size":    func(m *Manifest) { m.Files[0].Bytes++ },
		"overflow": func(m *Manifest) {
			f := &m.Files[0]
			f.Bytes, f.Parts = -2, []Part{f.Parts[0], f.Parts[0]}
			f.Parts[0].Bytes, f.Parts[1].Bytes = math.MaxInt64, math.MaxInt64
		},
	} {
		wrong, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		change(wrong)
		text, err := wrong.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(text); err == nil || what == "newer" != errors.Is(err, errkind.ErrNewer) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLimit checks that in any period no more bytes are transferred than the limit allows, except
// for those of one step of each goroutine.
func TestLimit(t *testing.T) {
	l := newLimiter(1000)
	now := time.Unix(0, 0)
	l.now = func() time.Time { return now }
	l.sleep = func(_ context.Context, d time.Duration) error {
		now = now.Add(d)
		return nil
	}
	for range 10 {
		if err := l.wait(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
	}
	if took := now.Sub(time.Unix(0, 0)); took != 4500*time.Millisecond {
		t.Errorf("5000 bytes took %v", took)
	}
	now = now.Add(time.Hour) // what was not used is lost
	before := now
	for range 3 {
		if err := l.wait(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
	}
	if took := now.Sub(before); took != time.Second {
		t.Errorf("1500 bytes took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l = newLimiter(1)
	if err := errors.Join(l.wait(ctx, 1e9), l.wait(ctx, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestSplitURI checks how generations are named in URIs.
func TestSplitURI(t *testing.T) {
	for name, want := range map[string]struct {
		uri    string
		number int
	}{
		"hdfs://nn/models@41": {"hdfs://nn/models", 41}, "/a@b/c": {"/a@b/c", 0}, "/a@7/c": {"/a@7/c", 0}, "/a@0": {"/a@0", 0},
		"/a@x": {"/a@x", 0}, "@3": {"@3", 0}, "/a@+3": {"/a@+3", 0}, "hdfs://user@nn": {"hdfs://user@nn", 0}, "/a": {"/a", 0},
	} {
		if uri, number := SplitURI(name); uri != want.uri || number != want.number {
			t.Errorf("%s: %s, %d", name, uri, number)
		}
	}
}

// healingStore is a store in which a damaged file is good after it was read once.
type healingStore struct {
	*memStore
	name string
	good memFile
}

func (s *healingStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	r, err := s.memStore.Open(ctx, name, size, offset)
	if name == s.name {
		s.mu.Lock()
		s.files[name] = s.good
		s.mu.Unlock()
	}
	return r, err
}

// meetingStore opens the objects of one file only two at a time.
type meetingStore struct {
	*memStore
	objects map[string]bool
	meet    chan struct{}
}

func (s *meetingStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	if s.objects[path.Base(name)] {
		select {
		case s.meet <- struct{}{}:
		case <-s.meet:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// TestFetchPartsAtOnce checks that parts of one file are fetched at the same time, so that a model
// that is one file is not limited to the speed of one stream.
func TestFetchPartsAtOnce(t *testing.T) {
	s, _, m, c := published(t, quiet)
	meeting := &meetingStore{s, make(map[string]bool), make(chan struct{})}
	for _, f := range m.Files {
		if f.Name == "dense" {
			for _, p := range f.Parts[:2*(len(f.Parts)/2)] {
				meeting.objects[p.Object] = true
			}
		}
	}
	if len(meeting.objects) < 2 || len(meeting.objects)%2 != 0 {
		t.Fatalf("the file has the objects %v", meeting.objects)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute) // it would wait forever
	defer stop()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "table"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := Open("mem", meeting, quiet).Fetch(ctx, m, func(f *File) string { return filepath.Join(dir, f.Name) })
	if err != nil || out.Moved != m.Bytes() {
		t.Fatalf("%+v, %v", out, err)
	}
	wantFetched(t, dir, c)
}
