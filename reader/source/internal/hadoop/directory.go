package hadoop

import (
	"context"
	"io"
	"path"

	"aibox/reader/source/internal/fsys"
)

func (c *Cluster) OpenOnce(ctx context.Context, p string, f fsys.File, offset int64) (io.ReadCloser, error) {
	return c.OpenRange(ctx, p, f, offset)
}

func (c *Cluster) Rename(ctx context.Context, from, to string) error {
	from, to = CleanPath(from), CleanPath(to)
	return c.do(ctx, "rename", from, func(s *session) error {
		if err := s.client.MkdirAll(path.Dir(to), 0o755); err != nil {
			return err
		}
		return s.client.Rename(from, to)
	})
}

func (c *Cluster) Remove(ctx context.Context, p string) error {
	p = CleanPath(p)
	return c.do(ctx, "remove", p, func(s *session) error { return s.client.Remove(p) })
}
