package remote

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aibox/internal/testseed"
)

func openReading(t *testing.T, d *Directory, dir string) *Reading {
	t.Helper()
	r, err := d.OpenReading([]string{filepath.Join(dir, "RECORD")}, func(base string) string { return filepath.Join(dir, base) })
	if err != nil || r == nil {
		t.Fatalf("%v, %v", r, err)
	}
	t.Cleanup(r.Close)
	return r
}

// readAt reads a file as a table does: it asks for the bytes that are zero.
func readAt(r *Reading, dir, name string, buf []byte, offset int64) (brought bool, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err := f.ReadAt(buf, offset); err != nil {
		return false, err
	}
	if bytes.ContainsFunc(buf, func(r rune) bool { return r != 0 }) {
		return false, nil
	}
	return r.Again(name, buf, offset)
}

// TestReading checks that several readers of incomplete files get the missing bytes from the store,
// through a cache that keeps its limit, and change nothing on disk. When the files are complete,
// nothing is fetched any more, so that the store need not be reachable.
func TestReading(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	dir := t.TempDir()
	announced(t, Open("mem", s, quiet), m, dir)
	before := treeOf(t, dir)
	var gone atomic.Bool // what is read ahead may still ask
	d := Open("mem", &faultyStore{memStore: s, fail: func(int) (bool, bool) { return gone.Load(), false }}, quiet)
	r := openReading(t, d, dir)
	r.cache.places = 2
	read := func(brings bool) {
		t.Helper()
		var group sync.WaitGroup
		for range 4 {
			seed := rng.Uint64()
			group.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range 12 {
					name := []string{"0.bucket", "2.bucket", "3.bucket"}[rng.IntN(3)]
					want := c["table/"+name]
					from := rng.IntN(len(want) - 20)
					buf := make([]byte, 10+rng.IntN(min(len(want)-from-10, 3*chunkBytes/2)))
					brought, err := readAt(r, dir, name, buf, int64(from))
					if err != nil || string(buf) != want[from:][:len(buf)] || brought != brings {
						t.Errorf("%s at %d: %d bytes, brought: %v, %v", name, from, len(buf), brought, err)
					}
				}
			})
		}
		group.Wait()
	}
	read(true)
	if st := r.Stats(); st.CacheBytes != 2*chunkBytes || st.Fetches == 0 || st.FetchedBytes == 0 {
		t.Errorf("%+v", st)
	}
	if after := treeOf(t, dir); after != before {
		t.Errorf("the directory has changed:\n%s\n%s", before, after)
	}
	buf := make([]byte, 10) // twice the same
	for i := range 2 {
		fetches := r.Stats().Fetches
		clear(buf)
		if again, err := r.Again("0.bucket", buf, chunkBytes-5); !again || err != nil || string(buf) != c["table/0.bucket"][chunkBytes-5:][:10] {
			t.Errorf("%v, %v", again, err)
		}
		if now := r.Stats().Fetches; i == 1 && now != fetches {
			t.Errorf("%d chunks were fetched that were in the cache", now-fetches)
		}
	}
	if again, err := r.Again("other.bucket", buf, 0); again || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	arrive(t, openArriving(t, Open("mem", s, quiet), dir))
	gone.Store(true)
	fetches := r.Stats().Fetches
	read(false)
	clear(buf) // what was read before it arrived
	if again, err := r.Again("0.bucket", buf, 3); !again || err != nil || string(buf) != c["table/0.bucket"][3:13] {
		t.Errorf("%v, %v", again, err)
	}
	if now := r.Stats().Fetches; now != fetches || r.Lacks("0.bucket") {
		t.Errorf("%d chunks were fetched of files that are whole", now-fetches)
	}
	if r, err := d.OpenReading([]string{filepath.Join(dir, "RECORD")}, nil); r != nil || err != nil {
		t.Errorf("files that are whole: %v, %v", r, err)
	}
}

// treeOf describes the contents of a directory.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		data, err2 := os.ReadFile(filepath.Join(dir, e.Name()))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + " " + info.ModTime().String() + " " + sumOf(data) + "\n")
	}
	return b.String()
}

// TestReadingDamaged checks that bytes that were damaged in transit are fetched once more. If the
// store has wrong bytes, or cannot be reached, the error says so, and what can be done.
func TestReadingDamaged(t *testing.T) {
	rng := testseed.Rand(t)
	s, m, c := late(t, rng)
	f := &m.Files[slices.IndexFunc(m.Files, func(f File) bool { return f.Name == "table/0.bucket" })]
	object := path.Join(objectsDir, f.Parts[1].Object)
	good := s.files[object]
	wrong := bytes.Clone(good.data)
	wrong[5] ^= 1
	s.files[object] = memFile{data: wrong}
	dir := t.TempDir()
	var gone atomic.Bool
	d := Open("mem", &faultyStore{memStore: s, fail: func(int) (bool, bool) { return gone.Load(), false }}, quiet)
	announced(t, d, m, dir)
	r := openReading(t, d, dir)
	buf, at := make([]byte, 100), f.Parts[0].Bytes-50 // of two parts, one of which is right
	want := c[f.Name][at:][:100]
	if again, err := r.Again("0.bucket", buf, at); !again || err != nil || string(buf) == want {
		t.Fatalf("the damage cannot be seen: %v, %v", again, err)
	}
	if again, err := r.Again("0.bucket", buf, at); again || err != nil {
		t.Errorf("it is damaged, and said to be right: %v, %v", again, err)
	}
	s.mu.Lock()
	s.files[object] = good
	s.mu.Unlock()
	if again, err := r.Again("0.bucket", buf, at); !again || err != nil || string(buf) != want {
		t.Errorf("it was not fetched again: %v, %v", again, err)
	}
	gone.Store(true)
	if _, err := r.Again("2.bucket", buf, 7); !errors.Is(err, errFault) || !strings.Contains(err.Error(), "mem") || !strings.Contains(err.Error(), "2.bucket") || !strings.Contains(err.Error(), "aibox restore") {
		t.Errorf("the store cannot be reached: %v", err)
	}
	gone.Store(false)
	clear(buf)
	if again, err := r.Again("2.bucket", buf, 7); !again || err != nil || string(buf) != c["table/2.bucket"][7:][:100] {
		t.Errorf("the store can be reached again: %v, %v", again, err)
	}
	delete(s.files, object)
	r.cache.forget(r.files["0.bucket"], at, at+100)
	var damaged *DamagedError
	if _, err := r.Again("0.bucket", buf, at); !errors.As(err, &damaged) || !strings.Contains(damaged.URI, object) {
		t.Errorf("an object is missing: %v", err)
	}
	openArriving(t, d, dir).MarkDamaged(errors.New("it is known"))
	if r, err := d.OpenReading([]string{filepath.Join(dir, "RECORD")}, nil); r != nil || !errors.As(err, &damaged) || !strings.Contains(damaged.Reason, "it is known") {
		t.Errorf("the files will never be whole: %v, %v", r, err)
	}
}
