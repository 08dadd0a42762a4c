package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aibox/reader/source"
)

// memStore is a store in memory. Each change is atomic.
type memStore struct {
	mu    sync.Mutex
	files map[string]memFile
	dirs  map[string]bool // the directories that have or had files; those of files in it need not be there
	// after is called after each change, with mu held.
	after func()
}

type memFile struct {
	data    []byte
	modTime time.Time
}

func newMemStore() *memStore { return &memStore{files: make(map[string]memFile)} }

func (s *memStore) changed() {
	if s.after != nil {
		s.after()
	}
}

func (s *memStore) List(_ context.Context, dir string) ([]source.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []source.Entry
	if dir == "" {
		for name := range s.files {
			s.madeLocked(path.Dir(name))
		}
		for _, name := range slices.Sorted(maps.Keys(s.dirs)) {
			out = append(out, source.Entry{Name: name, IsDir: true})
		}
		return out, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if path.Dir(name) == dir {
			out = append(out, source.Entry{Name: path.Base(name), Size: int64(len(s.files[name].data)), ModTime: s.files[name].modTime})
		}
	}
	return out, nil
}

// madeLocked records that there is a directory, which no process removes. REQUIRES: s.mu is held.
func (s *memStore) madeLocked(dir string) {
	if s.dirs == nil {
		s.dirs = make(map[string]bool)
	}
	s.dirs[dir] = true
}

func notFound(name string) error {
	return &source.Error{Op: "open", URI: name, Kind: source.ErrNotFound}
}

func (s *memStore) Open(_ context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[name]
	if !ok {
		return nil, notFound(name)
	}
	if int64(len(f.data)) < size {
		return nil, &source.Error{Op: "open", URI: name, Kind: source.ErrChanged}
	}
	return io.NopCloser(bytes.NewReader(f.data[offset:size])), nil
}

func (s *memStore) Put(_ context.Context, name string, data io.ReaderAt, size int64, _ fs.FileMode) error {
	all, err := io.ReadAll(io.NewSectionReader(data, 0, size))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.madeLocked(path.Dir(name))
	s.files[name] = memFile{all, time.Now()}
	s.changed()
	return nil
}

func (s *memStore) Rename(_ context.Context, from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[from]
	if !ok {
		return notFound(from)
	}
	s.madeLocked(path.Dir(from))
	s.madeLocked(path.Dir(to))
	delete(s.files, from)
	s.files[to] = f
	s.changed()
	return nil
}

func (s *memStore) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.madeLocked(path.Dir(name))
	delete(s.files, name)
	s.changed()
	return nil
}

// names returns the files below a directory.
func (s *memStore) names(dir string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			out = append(out, rest)
		}
	}
	return out
}

// wholeLocked fails the test if a committed generation lacks an object or has a wrong one.
func (s *memStore) wholeLocked(t *testing.T) {
	t.Helper()
	for name, f := range s.files {
		if path.Dir(name) != generationsDir {
			continue
		}
		m, err := decode(f.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m.objects(func(p *Part) {
			if o, ok := s.files[path.Join(objectsDir, p.Object)]; !ok || sumOf(o.data) != p.SHA256 {
				t.Errorf("%s names the object %s, which is not there", name, p.Object)
			}
		})
	}
}

// clean fails the test if there is anything that no generation needs.
func (s *memStore) clean(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	s.wholeLocked(t)
	named := make(map[string]bool)
	for name, f := range s.files {
		if m, err := decode(f.data); err == nil && slices.Contains(kindDirs[:], path.Dir(name)) {
			named[name] = true
			m.objects(func(p *Part) { named[path.Join(objectsDir, p.Object)] = true })
		}
	}
	s.mu.Unlock()
	for name := range s.files {
		if !named[name] {
			t.Errorf("%s is left over", name)
		}
	}
}

// errFault is the error of a faultyStore.
var errFault = errors.New("injected fault")

// faultyStore is a store whose operations fail if fail says so: before they do anything, or after
// they have done it, so that only the response is lost.
type faultyStore struct {
	*memStore
	mu    sync.Mutex
	ops   int
	fail  func(op int) (before, after bool) // nil: none fails
	steps *steps                            // nil: operations need not wait
}

func (s *faultyStore) do(run func() error) (err error) {
	if s.steps != nil {
		s.steps.take(func() { err = run() })
		return err
	}
	s.mu.Lock()
	before, after := s.fail(s.ops)
	s.ops++
	s.mu.Unlock()
	if before {
		return errFault
	}
	err = run()
	if after {
		return errFault
	}
	return err
}

func (s *faultyStore) List(ctx context.Context, dir string) (out []source.Entry, err error) {
	err = s.do(func() (err error) {
		out, err = s.memStore.List(ctx, dir)
		return err
	})
	return out, err
}

func (s *faultyStore) Open(ctx context.Context, name string, size, offset int64) (out io.ReadCloser, err error) {
	err = s.do(func() (err error) {
		out, err = s.memStore.Open(ctx, name, size, offset)
		return err
	})
	return out, err
}

func (s *faultyStore) Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	return s.do(func() error { return s.memStore.Put(ctx, name, data, size, perm) })
}

func (s *faultyStore) Rename(ctx context.Context, from, to string) error {
	return s.do(func() error { return s.memStore.Rename(ctx, from, to) })
}

func (s *faultyStore) Remove(ctx context.Context, name string) error {
	return s.do(func() error { return s.memStore.Remove(ctx, name) })
}

// fullStore is a store that has room for that many bytes of objects.
type fullStore struct {
	*memStore
	capacity int64
	putting  sync.Mutex // of several objects that are put at once, each sees the room that those before it have left
}

func (s *fullStore) used() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, f := range s.files {
		if strings.HasPrefix(name, objectsDir) {
			bytes += int64(len(f.data))
		}
	}
	return bytes
}

func (s *fullStore) Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	s.putting.Lock()
	defer s.putting.Unlock()
	if strings.HasPrefix(name, objectsDir) && s.used()+size > s.capacity {
		return &source.Error{Op: "write", URI: name, Kind: source.ErrFailed, Err: syscall.ENOSPC}
	}
	return s.memStore.Put(ctx, name, data, size, perm)
}
