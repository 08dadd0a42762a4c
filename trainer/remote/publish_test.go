package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aibox/reader/source"
)

var quiet = Options{Logger: slog.New(slog.DiscardHandler), partBytes: 100}

// contents are the files of a generation.
type contents map[string]string

// night returns the files of a model after n nights: files that were made in one night each, under
// names that are not used again, and files whose contents change each night.
func night(job string, n int) contents {
	c := contents{"job.yaml": "job " + job, "dense": lines(fmt.Sprint(job, " dense ", n), 20), "empty": "", "twice": "same", "again": "same"}
	for i := max(1, n-3); i <= n; i++ { // older ones were compacted
		c[fmt.Sprintf("table/%s-%d.bucket", job, i)] = lines(fmt.Sprint(job, " rows ", i), 3*i)
	}
	return c
}

// lines returns n different lines.
func lines(text string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, text, i)
	}
	return b.String()
}

type memReader struct{ *strings.Reader }

func (memReader) Close() error { return nil }

func (c contents) publication(job string, n int) Publication {
	p := Publication{
		Job: job, Owner: "host:" + job, Identity: fmt.Sprint(job, n), ParentIdentity: fmt.Sprint(job, n-1), Number: n,
		Model: fmt.Appendf(nil, `{"night": %d}`, n), Keep: 2,
	}
	for name, text := range c {
		p.Files = append(p.Files, Local{Name: name, Bytes: int64(len(text)), Unique: strings.HasPrefix(name, "table/"),
			Open: func() (ReaderAt, error) { return memReader{strings.NewReader(text)}, nil }})
	}
	slices.SortFunc(p.Files, func(a, b Local) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// bytes returns the size of the files whose names begin with a prefix.
func (c contents) bytes(prefix string) int64 {
	n := 0
	for name, text := range c {
		if strings.HasPrefix(name, prefix) {
			n += len(text)
		}
	}
	return int64(n)
}

// fetch fetches a generation into a directory.
func fetch(t *testing.T, d *Directory, m *Manifest, dir string) (*Fetched, error) {
	t.Helper()
	for _, f := range m.Files {
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(f.Name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d.Fetch(t.Context(), m, func(f *File) string { return filepath.Join(dir, f.Name) })
}

// wantFetched fails the test unless the directory has exactly the files that were published.
func wantFetched(t *testing.T, dir string, want contents) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(at string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		data, err := os.ReadFile(at)
		name, _ := filepath.Rel(dir, at)
		if text, ok := want[name]; !ok || text != string(data) {
			t.Errorf("%s: it is another one", name)
		}
		return err
	})
	if err != nil || n != len(want) {
		t.Errorf("%d files, want %d: %v", n, len(want), err)
	}
}

// wholeNumbers returns the numbers of manifests, and fails the test unless their generations are
// complete.
func wholeNumbers(t *testing.T, d *Directory, all []*Manifest) []int {
	t.Helper()
	var got []int
	for _, m := range all {
		got = append(got, m.Number)
		if err := d.Whole(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	return got
}

// wantGenerations fails the test unless the directory has complete generations with exactly these
// numbers.
func wantGenerations(t *testing.T, d *Directory, numbers ...int) []*Manifest {
	t.Helper()
	all, faults, err := d.Generations(t.Context())
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	got := wholeNumbers(t, d, all)
	if !slices.Equal(got, numbers) {
		t.Errorf("generations %v, want %v", got, numbers)
	}
	return all
}

// TestPublish checks that only what is new is uploaded each night, that what no night needs any
// more is deleted, and that each night that is there can be fetched.
func TestPublish(t *testing.T) {
	s := newMemStore()
	d := Open("mem", s, quiet)
	for n := 1; n <= 8; n++ {
		c := night("a", n)
		out, err := d.Publish(t.Context(), c.publication("a", n))
		if err != nil {
			t.Fatal(err)
		}
		changed := c.bytes("dense") + c.bytes(fmt.Sprintf("table/a-%d.", n))
		if n == 1 {
			changed += c.bytes("job.yaml") + c.bytes("again")
		}
		if out.UploadedBytes != changed || out.Generation != n || out.Already {
			t.Errorf("night %d: %+v, of which %d bytes are new", n, out, changed)
		}
		s.clean(t)
		all := wantGenerations(t, d, []int{n, n - 1}[:min(n, 2)]...)
		dir := t.TempDir()
		if _, err := fetch(t, d, all[0], dir); err != nil {
			t.Fatal(err)
		}
		wantFetched(t, dir, c)
		if parent := all[0].Parent; n > 1 && (parent == nil || parent.Number != n-1 || parent.ID != all[1].ID) {
			t.Errorf("night %d was made from %+v", n, parent)
		}
		out, err = d.Publish(t.Context(), c.publication("a", n))
		if err != nil || !out.Already || out.UploadedBytes != 0 || out.Generation != n {
			t.Errorf("night %d again: %+v, %v", n, out, err)
		}
	}
}

// TestJobsBesideOneAnother checks that two jobs in one directory have numbers of their own, and
// that each deletes only its own files.
func TestJobsBesideOneAnother(t *testing.T) {
	s := newMemStore()
	d := Open("mem", s, quiet)
	for n := 1; n <= 4; n++ {
		for _, job := range []string{"a", "b"} {
			if _, err := d.Publish(t.Context(), night(job, n).publication(job, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := wantGenerations(t, d, 8, 7, 6, 5)
	var jobs []string
	for _, m := range all {
		jobs = append(jobs, m.Job)
	}
	if got := strings.Join(jobs, ""); got != "baba" {
		t.Errorf("jobs %s", got)
	}
	s.clean(t)
}

// TestPublishKilled kills the process of a publication before or after each operation. The earlier
// generations must stay complete, and the next publication, of the same or the next night, must
// have the same result as without the kill.
func TestPublishKilled(t *testing.T) {
	before := newMemStore()
	for i := 1; i <= 3; i++ {
		if _, err := Open("mem", before, quiet).Publish(t.Context(), night("a", i).publication("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, next := range []int{4, 5} {
		for _, answered := range []bool{true, false} {
			for n := 0; ; n++ {
				s := &memStore{files: maps.Clone(before.files)}
				d := Open("mem", s, quiet)
				s.after = func() { s.wholeLocked(t) }
				dying := &faultyStore{memStore: s, fail: func(op int) (bool, bool) { return op > n || op == n && answered, op == n }}
				ctx, cancel := context.WithCancel(t.Context())
				_, err := Open("mem", dying, quiet).Publish(ctx, night("a", 4).publication("a", 4))
				cancel()
				if _, _, err := d.Generations(t.Context()); err != nil {
					t.Fatal(err)
				}
				out, err2 := d.Publish(t.Context(), night("a", next).publication("a", next))
				if err2 != nil {
					t.Fatal(err2)
				}
				s.clean(t)
				if all, _, err := d.Generations(t.Context()); err != nil || all[0].Number != out.Generation || all[0].Bytes() != out.Bytes {
					t.Fatal(err)
				}
				if t.Failed() {
					t.Fatalf("killed at operation %d (%v), then night %d", n, answered, next)
				}
				if err == nil && dying.ops <= n {
					break
				}
			}
		}
	}
}

// TestPublishContinues checks that what was uploaded before a publication was killed is not
// uploaded again, neither by the same night nor by the next one.
func TestPublishContinues(t *testing.T) {
	for _, next := range []int{4, 5} {
		s := newMemStore()
		dying := &faultyStore{memStore: s, fail: func(int) (bool, bool) { return len(s.names(objectsDir)) >= 4, false }}
		if _, err := Open("mem", dying, quiet).Publish(t.Context(), night("a", 4).publication("a", 4)); !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		done := s.bytesOf(objectsDir)
		out, err := Open("mem", s, quiet).Publish(t.Context(), night("a", next).publication("a", next))
		if err != nil || done == 0 {
			t.Fatal(err)
		}
		s.clean(t)
		kept := int64(0)
		if next == 4 {
			kept = done
		}
		if most := out.Bytes - 4 - kept; out.UploadedBytes > most { // "twice" and "again" are one object
			t.Errorf("night %d: %d of %d bytes are uploaded, %d were there", next, out.UploadedBytes, out.Bytes, done)
		}
	}
}

func (s *memStore) bytesOf(dir string) int64 {
	n := 0
	for _, name := range s.names(dir) {
		n += len(s.files[path.Join(dir, name)].data)
	}
	return int64(n)
}

// TestPublishFaults makes every n-th operation fail, for each n. A publication that succeeds must
// be complete, and one that fails must succeed when the directory works again.
func TestPublishFaults(t *testing.T) {
	for every := 1; every < 30; every++ {
		s := newMemStore()
		s.after = func() { s.wholeLocked(t) }
		failing := &faultyStore{memStore: s, fail: func(op int) (bool, bool) { return op%every == every-1 && op%2 == 0, op%every == every-1 }}
		for n := 1; n <= 4; n++ {
			_, err := Open("mem", failing, quiet).Publish(t.Context(), night("a", n).publication("a", n))
			if err != nil && !errors.Is(err, errFault) {
				t.Fatalf("every %d: %v", every, err)
			}
		}
		d := Open("mem", s, quiet)
		if _, err := d.Publish(t.Context(), night("a", 4).publication("a", 4)); err != nil {
			t.Fatal(err)
		}
		s.clean(t)
	}
}

// hangingStore is a store in which one manifest cannot be read once there is a second generation:
// each attempt lasts until its context ends.
type hangingStore struct {
	*memStore
	hangs func() // is called when an attempt begins
}

func (s *hangingStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	if generations := s.names(generationsDir); len(generations) > 1 && name == path.Join(generationsDir, generations[0]) {
		s.hangs()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// ghostStore is a store that lists a manifest that does not exist.
type ghostStore struct {
	*memStore
	asked int
}

func (s *ghostStore) List(ctx context.Context, dir string) ([]source.Entry, error) {
	all, err := s.memStore.List(ctx, dir)
	if dir == pendingDir {
		all = append(all, source.Entry{Name: newID() + ".json", Size: 1})
	}
	return all, err
}

func (s *ghostStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	if s.asked++; s.asked > 1000 {
		return nil, errors.New("it is asked for again and again")
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// TestGhost checks that a manifest that is listed but does not exist is looked for as long as an
// NFS client may have cached its name, and not for ever.
func TestGhost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, _, err := Open("far", &ghostStore{memStore: newMemStore()}, quiet).Generations(t.Context())
		if !errors.Is(err, source.ErrNotFound) || time.Since(begin) < scanPatience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// TestPublishDoesNotWait checks that a publication does not wait at its end for the store to read
// an old manifest. Nothing is deleted then; the next publication does that.
func TestPublishDoesNotWait(t *testing.T) {
	s := newMemStore()
	if _, err := Open("mem", s, quiet).Publish(t.Context(), night("a", 1).publication("a", 1)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), cleanWithin: 10 * time.Millisecond}
	p := night("a", 2).publication("a", 2)
	p.Keep = 1
	out, err := Open("mem", &hangingStore{s, func() {}}, o).Publish(t.Context(), p)
	if err != nil || out.Generation != 2 || out.DeletedBytes != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if !strings.Contains(log.String(), "deleting them took longer than 10ms") {
		t.Errorf("the log says\n%s", &log)
	}
	if got := s.names(generationsDir); len(got) != 2 {
		t.Errorf("generations %q", got)
	}
	if _, err := Open("mem", s, quiet).Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantGenerations(t, Open("mem", s, quiet), 2)
	s.clean(t)
}

// TestPublishEndsQuietly checks that it is not logged as a failure if old files are not deleted
// because the caller has ended the publication, as a job does that has committed its model.
func TestPublishEndsQuietly(t *testing.T) {
	s := newMemStore()
	if _, err := Open("mem", s, quiet).Publish(t.Context(), night("a", 1).publication("a", 1)); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var log strings.Builder
	o := Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), cleanWithin: time.Minute}
	p := night("a", 2).publication("a", 2)
	p.Keep = 1
	if out, err := Open("mem", &hangingStore{s, end}, o).Publish(ctx, p); err != nil || out.Generation != 2 || out.DeletedBytes != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if log.String() != "" {
		t.Errorf("the log says\n%s", &log)
	}
}

// TestPublishHeals checks that objects that are missing or truncated are uploaded again, and that
// nothing is deleted to which a manifest may refer that cannot be read.
func TestPublishHeals(t *testing.T) {
	for _, damage := range []func(s *memStore, name string){
		func(s *memStore, name string) { delete(s.files, name) },
		func(s *memStore, name string) { s.files[name] = memFile{data: s.files[name].data[:1]} },
	} {
		s := newMemStore()
		var log bytes.Buffer
		o := quiet
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		d := Open("mem", s, o)
		p := night("a", 3).publication("a", 3)
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for _, name := range s.names(objectsDir) {
			damage(s, path.Join(objectsDir, name))
			out, err := d.Publish(t.Context(), p)
			if err != nil || out.UploadedBytes == 0 || out.Already {
				t.Fatalf("%+v, %v", out, err)
			}
			s.clean(t)
			wantGenerations(t, d, out.Generation)
		}
		if !strings.Contains(log.String(), "uploaded again") {
			t.Error("the log does not say what is damaged")
		}
		manifest := path.Join(generationsDir, s.names(generationsDir)[0])
		damage(s, manifest)
		if _, there := s.files[manifest]; !there {
			continue
		}
		before := s.names(objectsDir)
		if _, err := d.Publish(t.Context(), night("a", 7).publication("a", 7)); err != nil {
			t.Fatal(err)
		}
		for _, name := range before {
			if _, there := s.files[path.Join(objectsDir, name)]; !there {
				t.Errorf("%s was deleted, although a manifest cannot be read", name)
			}
		}
	}
}

// TestLocalFails checks that a local file that cannot be read ends the publication with its error.
func TestLocalFails(t *testing.T) {
	s := newMemStore()
	p := night("a", 1).publication("a", 1)
	reads := 0
	text := strings.Repeat("x", 500)
	p.Files = append(p.Files, Local{Name: "z", Bytes: 500, Open: func() (ReaderAt, error) {
		if reads++; reads > 1 { // the checksums were computed
			return failingReader{}, nil
		}
		return memReader{strings.NewReader(text)}, nil
	}})
	if _, err := Open("mem", s, quiet).Publish(t.Context(), p); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
	if len(s.names(generationsDir)) > 0 {
		t.Error("it is published")
	}
	p.Files[len(p.Files)-1].Bytes = 501
	reads = 0
	if _, err := Open("mem", s, quiet).Publish(t.Context(), p); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that is too short: %v", err)
	}
}

// TestPublishTwice checks that publishing begins again if another process that publishes for the
// same model directory, such as "aibox publish" at the end of a night, removes what is being
// uploaded.
func TestPublishTwice(t *testing.T) {
	at := t.TempDir()
	sources := source.New(source.Options{})
	defer sources.Close()
	store, err := sources.Directory(at)
	if err != nil {
		t.Fatal(err)
	}
	p := night("a", 1).publication("a", 1)
	reads := 0
	p.Files = append(p.Files, Local{Name: "z", Bytes: 3, Open: func() (ReaderAt, error) {
		if reads++; reads != 2 { // the first time its checksum is computed
			return memReader{strings.NewReader("xyz")}, nil
		}
		return disturbedReader{memReader{strings.NewReader("xyz")}, func() {
			pending, _ := filepath.Glob(filepath.Join(at, pendingDir, "*"))
			uploads, _ := filepath.Glob(filepath.Join(at, objectsDir, ".*.tmp"))
			if len(pending) != 1 || len(uploads) == 0 {
				t.Errorf("pending %q, uploads %q", pending, uploads)
			}
			for _, file := range slices.Concat(pending, uploads) {
				if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
			}
		}}, nil
	}})
	d := Open(at, store, quiet)
	if out, err := d.Publish(t.Context(), p); err != nil || out.Already {
		t.Fatalf("%+v, %v", out, err)
	}
	wantGenerations(t, d, 1)
}

// disturbedReader calls a function before it is read.
type disturbedReader struct {
	memReader
	before func()
}

func (r disturbedReader) ReadAt(p []byte, off int64) (int, error) {
	r.before()
	return r.memReader.ReadAt(p, off)
}

type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, os.ErrClosed }
func (failingReader) Close() error                      { return nil }
