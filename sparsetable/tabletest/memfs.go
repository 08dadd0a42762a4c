package tabletest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"

	"aibox/sparsetable"
)

// ErrInjected is the error of a failing operation of a MemFS.
var ErrInjected = errors.New("tabletest: injected fault")

// MemFS is a file system in memory that simulates crashes: the bytes of a file survive a
// crash once the file is synced, and names survive once the directory is synced. Its
// operations can be made to fail. Any goroutine may use it.
type MemFS struct {
	mu      sync.Mutex
	live    map[string]*inode // by path
	durable map[string]*inode
	ops     int
	failAt  int // 0: never
	sticky  bool
	open    int
}

type inode struct {
	data   []byte
	synced []byte
}

// NewMemFS returns an empty file system.
func NewMemFS() *MemFS { return &MemFS{live: map[string]*inode{}, durable: map[string]*inode{}} }

// FailAt makes the n-th operation from now on fail; 1 is the next operation. With sticky every
// later operation fails, too. A failing Write writes half of its bytes. 0 stops the failures.
func (m *MemFS) FailAt(n int, sticky bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops, m.failAt, m.sticky = 0, n, sticky
}

// Failed reports whether an operation has failed since FailAt.
func (m *MemFS) Failed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failAt > 0 && m.ops >= m.failAt
}

// OpenFiles is the number of files that were not closed.
func (m *MemFS) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// Crash implements Disk: rng decides what remains of the changes that were not durable.
func (m *MemFS) Crash(rng *rand.Rand) Disk {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMemFS()
	names := map[string]bool{}
	for n := range m.live {
		names[n] = true
	}
	for n := range m.durable {
		names[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		node := m.durable[n]
		if m.live[n] != node && rng.IntN(2) == 0 {
			node = m.live[n]
		}
		if node == nil {
			continue
		}
		data := slices.Clone(node.synced)
		if extra := len(node.data) - len(data); extra > 0 && rng.IntN(2) == 0 {
			// Some bytes of the unsynced end of the file are kept, the last of them as zeros.
			keep := rng.IntN(extra + 1)
			data = append(data, node.data[len(data):len(data)+keep]...)
			for i := len(data) - min(keep, rng.IntN(512)); i < len(data); i++ {
				data[i] = 0
			}
		}
		after.live[n] = &inode{data: data, synced: slices.Clone(data)}
	}
	after.durable = maps.Clone(after.live)
	return after
}

// Flip inverts bits of one byte of a file.
func (m *MemFS) Flip(name string, offset int64, bits byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[name].data[offset] ^= bits
}

// Truncate shortens a file.
func (m *MemFS) Truncate(name string, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[name].data = m.live[name].data[:size]
}

// Put makes a durable file with the given data.
func (m *MemFS) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := &inode{data: slices.Clone(data), synced: slices.Clone(data)}
	m.live[name], m.durable[name] = n, n
}

// Get returns the bytes of a file.
func (m *MemFS) Get(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.live[name].data)
}

// Files returns the paths of all files, sorted.
func (m *MemFS) Files() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.live))
}

// step counts an operation. REQUIRES: mu is held.
func (m *MemFS) step(what, name string) error {
	m.ops++
	if m.failAt > 0 && (m.ops == m.failAt || m.sticky && m.ops > m.failAt) {
		return fmt.Errorf("%s %s: %w", what, name, ErrInjected)
	}
	return nil
}

// Create implements sparsetable.FS.
func (m *MemFS) Create(name string) (sparsetable.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("create", name); err != nil {
		return nil, err
	}
	m.live[name] = &inode{}
	m.open++
	return &memFile{m: m, name: name, node: m.live[name]}, nil
}

// Open implements sparsetable.FS.
func (m *MemFS) Open(name string) (sparsetable.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("open", name); err != nil {
		return nil, err
	}
	node := m.live[name]
	if node == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	m.open++
	return &memFile{m: m, name: name, node: node}, nil
}

// Rename implements sparsetable.FS.
func (m *MemFS) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("rename", oldName); err != nil {
		return err
	}
	node := m.live[oldName]
	if node == nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	delete(m.live, oldName)
	m.live[newName] = node
	return nil
}

// Remove implements sparsetable.FS.
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("remove", name); err != nil {
		return err
	}
	if m.live[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.live, name)
	return nil
}

// List implements sparsetable.FS.
func (m *MemFS) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("list", dir); err != nil {
		return nil, err
	}
	var names []string
	for n := range m.live {
		if filepath.Dir(n) == filepath.Clean(dir) {
			names = append(names, filepath.Base(n))
		}
	}
	return names, nil
}

// MkdirAll implements sparsetable.FS.
func (m *MemFS) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.step("mkdir", dir)
}

// SyncDir implements sparsetable.FS.
func (m *MemFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step("sync", dir); err != nil {
		return err
	}
	in := func(n string, _ *inode) bool { return filepath.Dir(n) == filepath.Clean(dir) }
	maps.DeleteFunc(m.durable, in)
	for n, node := range m.live {
		if in(n, node) {
			m.durable[n] = node
		}
	}
	return nil
}

type memFile struct {
	m      *MemFS
	name   string
	node   *inode
	closed bool
}

func (f *memFile) Write(b []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("write", f.name); err != nil {
		f.node.data = append(f.node.data, b[:len(b)/2]...)
		return len(b) / 2, err
	}
	f.node.data = append(f.node.data, b...)
	return len(b), nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("read", f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("sync", f.name); err != nil {
		return err
	}
	f.node.synced = slices.Clone(f.node.data)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.step("stat", f.name); err != nil {
		return 0, err
	}
	return int64(len(f.node.data)), nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.m.open--
	return f.m.step("close", f.name)
}
