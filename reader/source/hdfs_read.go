package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// hdfsReader reads [offset, f.Size) of one file. After a fault it opens the
// file again and goes on at its present offset.
type hdfsReader struct {
	ctx    context.Context
	c      *cluster
	f      File
	path   string
	offset int64 // of the next byte to hand out

	s      *session
	fr     *hdfs.FileReader // nil: to be opened
	unbind func() bool

	pieceBytes  int
	replication int // replicas that the file's blocks should have
	retry       retrier
	err         error // for good
}

// pieceBytes is how much is asked of the library at a time. Its way of reading
// less than one checksum chunk, into a buffer of its own, verifies the chunk
// before it hands out a byte. Its way of reading whole chunks reads straight
// into our buffer, and when a checksum fails it hands out the bad bytes with a
// nil error. So we ask for less than a chunk, which HDFS makes 512 bytes.
//
// A file may have been written with smaller chunks. Then the library would
// read from the connection straight into our buffer, which the connection
// refuses (errUnchecked); the reader halves its pieces and tries again. Either
// way no byte reaches the caller unchecked.
const pieceBytes = 511

// replicaPatience is how long a block with fewer known replicas than it should
// have, all of them bad, may wait for a good one to be reported: a NameNode
// that has just started learns of them from the DataNodes one by one.
const replicaPatience = 10 * time.Second

// replicationOf is the replication factor of a file, 1 where it is not known.
func replicationOf(info os.FileInfo) int {
	if s, ok := info.Sys().(*hdfs.FileStatus); ok && s != nil {
		return max(1, int(s.GetBlockReplication()))
	}
	return 1
}

func (c *cluster) openRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error) {
	r := c.newReader(ctx, cleanPath(path), f, offset)
	if offset == f.Size {
		return r, nil
	}
	// Open now, so that a missing file is this call's error.
	for {
		err := r.open()
		if err == nil {
			return r, nil
		}
		if err := r.failed(err); err != nil {
			return nil, err
		}
	}
}

func (c *cluster) newReader(ctx context.Context, path string, f File, offset int64) *hdfsReader {
	return &hdfsReader{ctx: ctx, c: c, f: f, path: path, offset: offset, pieceBytes: pieceBytes,
		retry: retrier{c: c, op: "read", path: path}}
}

// open makes r.fr ready to read at r.offset.
func (r *hdfsReader) open() error {
	s, err := r.c.acquire(r.ctx, r.retry.attempts > 0)
	if err != nil {
		return err
	}
	r.s, r.unbind = s, s.bind(r.ctx)
	r.retry.pooled = s.pooled
	fr, err := s.client.Open(r.path)
	if err != nil {
		return s.explain(err)
	}
	r.c.reached.Store(true)
	r.replication = replicationOf(fr.Stat())
	if err := sameFile(r.f, hdfsEntry(r.path, fr.Stat())); err != nil {
		return err
	}
	if err := r.c.readable(r.path, fr.Stat()); err != nil {
		return err
	}
	// The only Seek of this FileReader, before its first Read: a later one
	// skips bytes in an open block without counting them.
	if _, err := fr.Seek(r.offset, io.SeekStart); err != nil {
		return err
	}
	r.fr = fr
	return nil
}

func (r *hdfsReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	left := r.f.Size - r.offset
	if left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		var n int
		var err error
		if r.fr == nil {
			err = r.open()
		}
		if err == nil {
			n, err = r.fill(p)
		}
		if n > 0 {
			r.offset += int64(n)
			r.retry.succeeded()
			r.c.readOnce.Store(true)
			if err != nil {
				r.drop() // the next Read starts anew, and meets the fault again if it is one
			}
			return n, nil
		}
		if r.err = r.failed(err); r.err != nil {
			return 0, r.err
		}
	}
}

// fill reads into p piece by piece until it is full or a fault comes.
func (r *hdfsReader) fill(p []byte) (int, error) {
	s := r.s
	n := 0
	for n < len(p) {
		piece := p[n:min(n+r.pieceBytes, len(p))]
		s.target = piece
		k, err := r.fr.Read(piece)
		s.target = nil
		if s.unchecked {
			return n, errUnchecked
		}
		n += k
		if err == io.EOF {
			// A NameNode that has just started may not know the blocks yet. If
			// the file itself has changed, opening it anew says so.
			return n, fmt.Errorf("it ends at byte %d of %d", r.offset+int64(n), r.f.Size)
		}
		if err != nil {
			return n, s.explain(err)
		}
	}
	return n, nil
}

// failed handles an error without progress: nil means try again.
func (r *hdfsReader) failed(err error) error {
	if r.s != nil {
		r.retry.session(r.s)
		if r.s.dataConn != nil && !r.s.dataConn.closed.Load() {
			r.s.suspect(r.s.dataConn)
			r.retry.suspects = r.s.suspects
		}
	} else {
		r.retry.dataNode = false
	}
	r.drop()
	if errors.Is(err, errUnchecked) && r.ctx.Err() == nil {
		if r.pieceBytes == 1 {
			return &Error{Op: "read", URI: r.f.URI, Kind: ErrUnsupported, Err: errors.New("checksums of single bytes")}
		}
		r.pieceBytes /= 2
		return nil
	}
	if strings.Contains(err.Error(), "invalid checksum") {
		// The library's verdict is about the last replica it tried; every other
		// one failed before it. Where none failed for another reason, all are
		// bad. Once more, on a fresh connection, to be sure.
		if len(r.retry.faults) == 0 {
			r.retry.corrupt++
			known := len(r.retry.suspects) >= r.replication || time.Since(r.retry.since) > replicaPatience
			if r.retry.corrupt >= 2 && known {
				return &CorruptError{URI: r.f.URI, Offset: r.offset, Err: err}
			}
		}
		err = fmt.Errorf("%w at byte %d (bad replica on %s; unreachable: %s)", err, r.offset,
			strings.Join(r.retry.suspects, ", "), strings.Join(r.retry.faults, ", "))
	}
	return r.retry.wait(r.ctx, err)
}

// drop throws the session away.
func (r *hdfsReader) drop() {
	r.fr = nil
	if r.s == nil {
		return
	}
	r.unbind()
	r.s.close()
	r.s = nil
}

// Close gives the session back.
func (r *hdfsReader) Close() error {
	if r.err == nil {
		r.err = errors.New("source: read after Close")
	}
	if r.s == nil {
		return nil
	}
	if r.fr == nil || !r.unbind() {
		r.drop()
		return nil
	}
	_ = r.fr.Close() // a DataNode connection; nothing was written
	r.c.release(r.s)
	r.s, r.fr = nil, nil
	return nil
}
