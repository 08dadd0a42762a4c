package blockio_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"aibox/sparsetable/internal/blockio"
)

// lateSource is the source of one file, whose second half is missing until let is closed.
type lateSource struct {
	path  string
	half  int64
	data  []byte
	let   chan struct{}
	fail  error
	again int

	mu   sync.Mutex
	here bool
}

func (s *lateSource) Lacks(name string) bool { return name == filepath.Base(s.path) }

func (s *lateSource) Here(_ string, _, to int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return to <= s.half || s.here
}

func (s *lateSource) Await(name string, from, to int64) error {
	if s.Here(name, from, to) {
		return nil
	}
	<-s.let
	if s.fail != nil {
		return s.fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here { // another read brought them, and may be reading them now
		return nil
	}
	s.here = true
	return os.WriteFile(s.path, s.data, 0o644)
}

func (s *lateSource) Again(_ string, buf []byte, offset int64) (bool, error) {
	s.again++
	copy(buf, s.data[offset:])
	return s.fail == nil, s.fail
}

// TestArriving checks that reads of bytes that have arrived do not wait for others that have not,
// that the others are delivered once their bytes have arrived, and that files that lack no bytes
// are opened by the device itself.
func TestArriving(t *testing.T) {
	const half = 64 << 10
	data := bytes.Repeat([]byte("aiboxrow"), 2*half/8)
	for _, fail := range []error{nil, errors.New("it is lost")} {
		dir := t.TempDir()
		s := &lateSource{path: filepath.Join(dir, "late"), half: half, data: data, let: make(chan struct{}), fail: fail}
		for name, n := range map[string]int{"late": half, "whole": 2 * half} {
			if err := os.WriteFile(filepath.Join(dir, name), append(bytes.Clone(data[:n]), make([]byte, 2*half-n)...), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		inner, err := blockio.Open(t.Context(), dir, blockio.Options{UnitBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		d := blockio.Arriving(inner, s)
		pool := blockio.NewPool(4096, 0)
		defer pool.Close()
		var c blockio.Completions
		var reads []*blockio.Read
		var files []blockio.File
		for _, name := range []string{"late", "whole"} {
			f, err := d.OpenFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
			for at := int64(0); at < 2*half+8192; at += 8192 { // the last one is behind the end
				buf, err := pool.Get(8192)
				if err != nil {
					t.Fatal(err)
				}
				reads = append(reads, &blockio.Read{File: f, Offset: at, Buf: buf, Cookie: uint64(len(reads))})
			}
		}
		all := len(reads)
		d.Submit(&c, reads)
		first := c.Wait(nil, all-all/2/2-1)
		for _, r := range first {
			if r.Cookie < uint64(all/2) && r.Offset >= half {
				t.Errorf("the read at %d ended before its bytes were there", r.Offset)
			}
		}
		close(s.let)
		for _, r := range c.Wait(first, c.Pending()) {
			late := r.Cookie < uint64(all/2)
			switch {
			case late && r.Offset >= half && fail != nil:
				if !errors.Is(r.Err, fail) {
					t.Errorf("the read at %d: %v", r.Offset, r.Err)
				}
			case r.Offset >= 2*half:
				if !errors.Is(r.Err, io.ErrUnexpectedEOF) {
					t.Errorf("the read behind the end: %v", r.Err)
				}
			case r.Err != nil || r.Done() != len(r.Buf) || !bytes.Equal(r.Buf, data[r.Offset:][:len(r.Buf)]):
				t.Errorf("the read at %d has other bytes: %v", r.Offset, r.Err)
			}
			pool.Put(r.Buf)
		}
		wrong := make([]byte, 100)
		if again, err := blockio.Refetch(files[0], wrong, half-50); again != (fail == nil) || !errors.Is(err, fail) || !bytes.Equal(wrong, data[half-50:][:100]) {
			t.Errorf("the file that was late is fetched again: %v, %v", again, err)
		}
		if again, err := blockio.Refetch(files[1], wrong, 0); again || err != nil || s.again != 1 {
			t.Errorf("the file that was whole is fetched again: %v, %v", again, err)
		}
		if err := errors.Join(files[0].Close(), files[1].Close(), d.Remove("late"), d.Close()); err != nil {
			t.Error(err)
		}
	}
}
