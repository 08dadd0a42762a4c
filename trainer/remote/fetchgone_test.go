package remote

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync/atomic"
	"testing"
)

// vanishingStore deletes an object while it is being read for the first time.
type vanishingStore struct {
	*memStore
	name string
	gone func() // nil: nothing else is deleted then
	once atomic.Bool
}

func (s *vanishingStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	r, err := s.memStore.Open(ctx, name, size, offset)
	if err != nil || name != s.name || s.once.Swap(true) {
		return r, err
	}
	if err := s.Remove(ctx, name); err != nil {
		return nil, err
	}
	if s.gone != nil {
		s.gone()
	}
	return io.NopCloser(io.MultiReader(io.LimitReader(r, size/2), goneReader(name))), nil
}

// goneReader is a file that was deleted.
type goneReader string

func (r goneReader) Read([]byte) (int, error) { return 0, notFound(string(r)) }

// TestFetchGone: an object that is deleted while it is being read counts as missing, so that a
// newer model is taken.
func TestFetchGone(t *testing.T) {
	s, _, m, _ := published(t, quiet)
	name := path.Join(objectsDir, m.Files[0].Parts[0].Object)
	_, err := fetch(t, Open("mem", &vanishingStore{memStore: s, name: name}, quiet), m, t.TempDir())
	var damaged *DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(damaged.URI, name) || !strings.Contains(damaged.Reason, "missing") {
		t.Error(err)
	}
}
