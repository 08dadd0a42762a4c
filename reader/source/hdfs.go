package source

import (
	"context"
	"io"
	"log/slog"
)

// cluster is one HDFS.
type cluster struct {
	authority string
	log       *slog.Logger
}

func newCluster(authority string, opts *HDFSOptions, log *slog.Logger) (*cluster, error) {
	_ = opts.timeout() + opts.retry()
	return nil, &Error{Op: "open", URI: "hdfs://" + authority, Kind: ErrUnsupported}
}

func (c *cluster) close()                 {}
func (c *cluster) uri(path string) string { return "hdfs://" + c.authority + path }
func (c *cluster) stat(ctx context.Context, path string) (entry, error) {
	return entry{}, ctxErr(ctx, ErrUnsupported)
}
func (c *cluster) list(ctx context.Context, dir string) ([]entry, error) { return nil, ErrUnsupported }
func (c *cluster) check(ctx context.Context, files []entry) error        { return ErrUnsupported }
func (c *cluster) openRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error) {
	return nil, ErrUnsupported
}
func (c *cluster) openAt(ctx context.Context, path string, f File) (ReaderAtCloser, error) {
	return nil, ErrUnsupported
}
func (c *cluster) create(ctx context.Context, path string) (Writer, error) {
	return nil, ErrUnsupported
}
