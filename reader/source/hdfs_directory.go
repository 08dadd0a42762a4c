package source

import (
	"context"
	"io"
	"path"
)

func (c *cluster) openOnce(ctx context.Context, p string, f File, offset int64) (io.ReadCloser, error) {
	return c.openRange(ctx, p, f, offset)
}

func (c *cluster) rename(ctx context.Context, from, to string) error {
	from, to = cleanPath(from), cleanPath(to)
	return c.do(ctx, "rename", from, func(s *session) error {
		if err := s.client.MkdirAll(path.Dir(to), 0o755); err != nil {
			return err
		}
		return s.client.Rename(from, to)
	})
}

func (c *cluster) remove(ctx context.Context, p string) error {
	p = cleanPath(p)
	return c.do(ctx, "remove", p, func(s *session) error { return s.client.Remove(p) })
}
