package directfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"aibox/internal/testseed"
)

// TestSameAsFile: whatever is written and read, in whole blocks or not, a file has what one
// in memory has; also where the file system refuses direct reads and writes.
func TestSameAsFile(t *testing.T) {
	rng := testseed.Rand(t)
	for _, refused := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "file")
		f, err := Open(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if f.direct == nil {
			t.Logf("the file system of %s has no direct I/O", path)
		}
		f.refused.Store(refused)
		var want []byte
		mem := Memory(64 << 10)
		if uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%block != 0 || len(mem) != 64<<10 {
			t.Fatal("memory is not aligned")
		}
		for range 500 {
			from, n, off := rng.IntN(3)*rng.IntN(1000), rng.IntN(len(mem)/2), rng.IntN(1<<18)
			if rng.IntN(2) == 0 {
				from, n, off = 0, n&^(block-1), off&^(block-1)
			}
			p := mem[from:][:n]
			if rng.IntN(2) == 0 {
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				if _, err := f.WriteAt(p, int64(off)); err != nil {
					t.Fatal(err)
				}
				if more := off + n - len(want); n > 0 && more > 0 {
					want = append(want, make([]byte, more)...)
				}
				copy(want[min(off, len(want)):], p)
				continue
			}
			got, err := f.ReadAt(p, int64(off))
			rest := want[min(off, len(want)):]
			if n > len(rest) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("reading %d of the last %d bytes: %v", n, len(rest), err)
			}
			if !bytes.Equal(p[:got], rest[:min(n, len(rest))]) {
				t.Fatalf("%d bytes at %d are read as others", n, off)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the file has other bytes: %v", err)
		}
	}
}

// TestRefuses: only the errors of file systems without direct I/O are no errors.
func TestRefuses(t *testing.T) {
	for err, want := range map[error]bool{unix.EINVAL: true, unix.EOPNOTSUPP: true, unix.ENOSPC: false, unix.EIO: false, io.EOF: false} {
		f := new(File)
		if f.refuses(&os.PathError{Err: err}) != want || f.refused.Load() != want {
			t.Errorf("%v", err)
		}
	}
}
