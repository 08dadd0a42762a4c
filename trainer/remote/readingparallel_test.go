package remote

import (
	"context"
	"io"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"aibox/internal/testseed"
)

// gatedStore is a store in which reading an object waits until next allows it.
type gatedStore struct {
	*memStore
	gate chan struct{}

	mu                   sync.Mutex
	waiting, most, total int
}

func (s *gatedStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	s.mu.Lock()
	s.waiting++
	s.total++
	s.most = max(s.most, s.waiting)
	s.mu.Unlock()
	select {
	case <-s.gate:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting--
	s.mu.Unlock()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// next lets one object be read, once all goroutines wait, and reports whether there was one.
func (s *gatedStore) next() bool {
	synctest.Wait()
	s.mu.Lock()
	waits := s.waiting > 0
	s.mu.Unlock()
	if waits {
		s.gate <- struct{}{}
	}
	return waits
}

// TestReadingFetchesSeveralAtOnce checks how many chunks are fetched at the same time for several
// readers, or for one that reads a file in order: as many as are allowed, or as the cache has room
// for, and each chunk only once as long as the cache has room for all of them. For a reader that
// reads in order, as much is fetched ahead as it has read so far, and not more. When the reading is
// closed, nothing is fetched any more.
func TestReadingFetchesSeveralAtOnce(t *testing.T) {
	for _, c := range []struct {
		name         string
		places, most int
		ahead        int // the least that who goes through a file has at once
		once         bool
	}{{"cache for all", ReadingCacheBytes / chunkBytes, readingFetches, 3, true}, {"small cache", 3, 3, 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m, data := late(t, testseed.Rand(t))
				dir := t.TempDir()
				announced(t, Open("mem", s, quiet), m, dir)
				gate := &gatedStore{memStore: s, gate: make(chan struct{})}
				read := func(r *Reading, base string, at, n int) {
					buf := make([]byte, n)
					if _, err := r.Again(base, buf, int64(at)); err != nil || string(buf) != data["table/"+base][at:][:n] {
						t.Errorf("%s at %d: %v", base, at, err)
					}
				}

				// Many readers, each of a chunk of its own.
				r := openReading(t, Open("mem", gate, quiet), dir)
				r.cache.places = c.places
				chunks := 0
				for i := range m.Files {
					f := &m.Files[i]
					if !isLate(f) {
						continue
					}
					file := newArrivingFile(f)
					file.each(0, f.Bytes, func(p *arrivingPart, i int) bool {
						chunks++
						go read(r, path.Base(f.Name), int(p.offset)+i*chunkBytes, 1)
						return true
					})
				}
				if chunks <= readingFetches {
					t.Fatalf("there are only %d chunks", chunks)
				}
				for gate.next() {
				}
				st := r.Stats()
				if gate.most != c.most || c.once && (gate.total != chunks || st.Fetches != int64(chunks)) || st.CacheBytes != int64(min(c.places, chunks))*chunkBytes {
					t.Errorf("%d chunks at once, want %d; %d of %d fetched, %+v", gate.most, c.most, gate.total, chunks, st)
				}

				// One who goes through a file.
				r.Close()
				r = openReading(t, Open("mem", gate, quiet), dir)
				r.cache.places, gate.most, gate.total = c.places, 0, 0
				size := len(data["table/0.bucket"])
				done := make(chan struct{})
				go func() {
					defer close(done)
					const piece = chunkBytes / 4
					for at := 0; at < size; at += piece {
						read(r, "0.bucket", at, min(piece, size-at))
					}
				}()
				for gate.next() {
				}
				<-done
				if gate.most < c.ahead || gate.most > c.most || c.once && gate.total != chunksOf(m, "0.bucket") {
					t.Errorf("%d chunks at once, %d fetched", gate.most, gate.total)
				}

				// Who reads here and there gets what he asks for, and no more.
				r.Close()
				r = openReading(t, Open("mem", gate, quiet), dir)
				gate.most, gate.total = 0, 0
				go func() {
					for _, at := range []int{3 * chunkBytes, 0, 5 * chunkBytes} {
						read(r, "0.bucket", at, 1)
					}
				}()
				for gate.next() {
				}
				if gate.most != 1 || gate.total != 3 {
					t.Errorf("%d chunks at once, %d fetched", gate.most, gate.total)
				}

				// It is closed while chunks are fetched.
				go func() {
					for at := range 3 {
						_, _ = r.Again("3.bucket", make([]byte, 1), int64(at*chunkBytes))
					}
				}()
				gate.next()
				synctest.Wait()
				r.Close()
				synctest.Wait()
				if gate.waiting != 0 {
					t.Errorf("%d chunks are still being fetched", gate.waiting)
				}
			})
		})
	}
}

// chunksOf returns how many chunks a file has.
func chunksOf(m *Manifest, base string) (n int) {
	for i := range m.Files {
		if strings.HasSuffix(m.Files[i].Name, filepath.Join("table", base)) {
			for _, p := range newArrivingFile(&m.Files[i]).parts {
				n += len(p.chunks)
			}
		}
	}
	return n
}
