package remote

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/reader/source"
)

// awayStore is a store whose file system is no longer mounted after some operations: it looks empty
// from then on.
type awayStore struct {
	*memStore
	left atomic.Int64 // operations until then
}

func awayAfter(s *memStore, operations int) *awayStore {
	out := &awayStore{memStore: s}
	out.left.Store(int64(operations))
	return out
}

func (s *awayStore) away() bool { return s.left.Add(-1) < 0 }

func (s *awayStore) List(ctx context.Context, dir string) ([]source.Entry, error) {
	if s.away() {
		return nil, nil
	}
	return s.memStore.List(ctx, dir)
}

func (s *awayStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	if s.away() {
		return nil, notFound(name)
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// wantAway fails the test unless err says that the store is away. It must not say that something is
// damaged, since callers give damaged models up.
func wantAway(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errAway) || errors.As(err, new(*DamagedError)) || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mem/"+objectsDir) {
		t.Errorf("the store is away, and the error is %v", err)
	}
}

// TestFetchAway checks that nothing counts as damaged if the file system is unmounted before or
// during a fetch, whenever that is, and that no report is dropped.
func TestFetchAway(t *testing.T) {
	s, _, m, c := published(t, quiet)
	o := quiet
	o.Optional = func(name string) bool { return name == "job.yaml" }
	wantAway(t, Open("mem", awayAfter(s, 0), o).Whole(t.Context(), m))
	for n := 0; ; n++ {
		dir := t.TempDir()
		out, err := fetch(t, Open("mem", awayAfter(s, n), o), m, dir)
		if err == nil {
			wantFetched(t, dir, c)
			if n == 0 || len(out.Dropped) > 0 {
				t.Errorf("after %d operations: %+v", n, out)
			}
			break
		}
		wantAway(t, err)
	}
}

// TestArrivingAway checks that files that are used while they arrive can become complete later if
// the file system is unmounted meanwhile.
func TestArrivingAway(t *testing.T) {
	s, m, c := late(t, testseed.Rand(t))
	dir := t.TempDir()
	announced(t, Open("mem", s, quiet), m, dir)
	for n := range 4 {
		a := openArriving(t, Open("mem", awayAfter(s, n), quiet), dir)
		if n == 0 {
			wantAway(t, a.Await("0.bucket", 0, 1))
		}
		wantAway(t, errors.Join(a.Complete(t.Context()), a.Stop()))
		if a.Err() != nil {
			t.Errorf("it is said never to become complete: %v", a.Err())
		}
	}
	a := openArriving(t, Open("mem", s, quiet), dir)
	if err := errors.Join(a.Complete(t.Context()), a.Stop()); err != nil {
		t.Fatal(err)
	}
	wantArrived(t, dir, c)
}

// TestVerifyAway checks that Verify fails if the file system is unmounted after it has read the
// manifests, whenever that is, or else reports the damage that it has found.
func TestVerifyAway(t *testing.T) {
	s, _ := several(t)
	name := path.Join(objectsDir, s.names(objectsDir)[0])
	damages["changed"](s, name, s.files[name])
	const most = 1000
	reading := awayAfter(s, most)
	if _, err := Open("mem", reading, quiet).scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := most - int(reading.left.Load()); ; n++ {
		store := awayAfter(s, n)
		v, err := Open("mem", store, quiet).Verify(t.Context(), 0)
		if err != nil {
			wantAway(t, err)
			continue
		}
		if len(v.Faults) != 1 || len(v.All) != 4 {
			t.Errorf("after %d operations: %d faults in %d manifests", n, len(v.Faults), len(v.All))
		}
		if store.left.Load() >= 0 {
			break
		}
	}
}

// TestObjectsDeleted checks that a directory whose objects somebody has deleted, with their
// subdirectory, gets a model again by publishing it, and that its models count as damaged when the
// subdirectory is made again.
func TestObjectsDeleted(t *testing.T) {
	s, d, m, c := published(t, quiet)
	maps.DeleteFunc(s.files, func(name string, _ memFile) bool { return path.Dir(name) == objectsDir })
	delete(s.dirs, objectsDir)
	wantAway(t, d.Whole(t.Context(), m))
	s.madeLocked(objectsDir)
	if err := d.Whole(t.Context(), m); !errors.As(err, new(*DamagedError)) {
		t.Error(err)
	}
	delete(s.dirs, objectsDir)
	out, err := d.Publish(t.Context(), c.publication("a", 4))
	if err != nil || out.Already {
		t.Fatalf("%+v, %v", out, err)
	}
	dir := t.TempDir()
	if _, err := fetch(t, d, wantGenerations(t, d, 5)[0], dir); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, c)
}

// TestPublishAway checks that a publication fails if the file system is unmounted while it reads the
// files, for their checksums or to upload them, and that no model is published below the mount
// point. If the directory is within the file system, nothing at all is written there.
func TestPublishAway(t *testing.T) {
	for _, kind := range []Kind{Generation, Snapshot} {
		for _, within := range []string{"", "models"} {
			n := 1
			for ; publishAway(t, kind, within, n); n++ {
			}
			if n < 3 {
				t.Errorf("only %d files were read", n-1)
			}
		}
	}
}

// publishAway publishes to a directory within a mounted file system, which is unmounted when the
// n-th file is read, and reports whether so many were.
func publishAway(t *testing.T, kind Kind, within string, n int) bool {
	t.Helper()
	mount := filepath.Join(t.TempDir(), "mnt")
	at := filepath.Join(mount, within)
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	sources := source.New(source.Options{})
	defer sources.Close()
	store, err := sources.Directory(at)
	if err != nil {
		t.Fatal(err)
	}
	d := Open(at, store, quiet)
	var read atomic.Int64
	publish := func(night int, away bool) error {
		p := Publication{Job: "a", Owner: "o", Identity: string(rune('a' + night)), Number: night, Kind: kind, Run: "r", Model: []byte("{}"), Keep: 2}
		for _, text := range []string{"of all nights", lines(string(rune('a'+night)), 20)} {
			p.Files = append(p.Files, Local{Name: text[:1], Bytes: int64(len(text)), Open: func() (ReaderAt, error) {
				if away && read.Add(1) == int64(n) {
					if err := errors.Join(os.Rename(mount, mount+".away"), os.Mkdir(mount, 0o755)); err != nil {
						t.Error(err)
					}
				}
				return memReader{strings.NewReader(text)}, nil
			}})
		}
		_, err := d.Publish(t.Context(), p)
		return err
	}
	if err := publish(1, false); err != nil {
		t.Fatal(err)
	}
	if err = publish(2, true); read.Load() < int64(n) {
		return false
	}
	if errkind.Of(t.Context(), err) != errkind.IO {
		t.Errorf("kind %d, %q, file %d: %v", kind, within, n, err)
	}
	hidden, _ := filepath.Glob(filepath.Join(at, "*", "*.json"))
	all, e := os.ReadDir(mount)
	if len(hidden) > 0 || within != "" && len(all) > 0 || e != nil {
		t.Errorf("kind %d, %q, file %d: below the mount point there are %q, %v, %v", kind, within, n, hidden, all, e)
	}
	return true
}
