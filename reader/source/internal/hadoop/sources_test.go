package hadoop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/listing"
)

// testSources reads and writes what URIs name, as package source does.
type testSources struct {
	opts Options
	log  *slog.Logger

	mu       sync.Mutex
	clusters map[string]*Cluster // by authority
}

// resolve returns the cluster of a URI and the path in it.
func (s *testSources) resolve(uri string) (*Cluster, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	authority, path, _ := strings.Cut(strings.TrimPrefix(uri, "hdfs://"), "/")
	c := s.clusters[authority]
	if c == nil {
		var err error
		if c, err = New(authority, &s.opts, s.log); err != nil {
			return nil, "", err
		}
		s.clusters[authority] = c
	}
	return c, "/" + path, nil
}

func (s *testSources) Expand(ctx context.Context, uris []string) (files []fsys.File, err error) {
	for _, uri := range uris {
		c, path, err := s.resolve(uri)
		if err != nil {
			return nil, err
		}
		entries, err := listing.Expand(ctx, c, uri, path)
		if err == nil {
			err = c.Check(ctx, entries)
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, fsys.File{URI: c.URI(e.Path), Size: e.Size, ModTime: e.ModTime})
		}
	}
	return files, nil
}

func (s *testSources) OpenRange(ctx context.Context, f fsys.File, offset int64) (io.ReadCloser, error) {
	c, path, err := s.resolve(f.URI)
	if err != nil {
		return nil, err
	}
	return c.OpenRange(ctx, path, f, offset)
}

func (s *testSources) OpenAt(ctx context.Context, f fsys.File) (fsys.ReaderAtCloser, error) {
	c, path, err := s.resolve(f.URI)
	if err != nil {
		return nil, err
	}
	return c.OpenAt(ctx, path, f)
}

func (s *testSources) Create(ctx context.Context, uri string) (fsys.Writer, error) {
	c, path, err := s.resolve(uri)
	if err != nil {
		return nil, err
	}
	return c.Create(ctx, path)
}

func (s *testSources) close() {
	for _, c := range s.clusters {
		c.Close()
	}
}

func readRange(ctx context.Context, s *testSources, f fsys.File, offset int64) (string, error) {
	r, err := s.OpenRange(ctx, f, offset)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

// logText is n lines that look like a log.
func logText(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d\t%d\t%x\t%x\n", i&1, i, rng.Uint32()%1000, rng.Uint64())
	}
	return b.Bytes()
}
