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

// hdfsReader reads [offset, f.Size) of one file, block after block. It holds a
// connection to one DataNode, and asks a NameNode only where blocks are.
//
// A replica that fails is left for the next one at the present offset. When
// all replicas of a block have failed, that is one failed attempt: after a
// pause the NameNode is asked anew where the block is (a DataNode may be back,
// tokens and keys are fresh), until the retry time is used up.
type hdfsReader struct {
	ctx    context.Context
	c      *cluster
	f      File
	blocks *fileBlocks
	offset int64 // of the next byte to hand out

	b      *block       // that holds offset; nil: to be found
	s      *blockStream // nil: to be opened
	faults []*replicaError
	// redialed is where a connection broke off last: once there it is dialed
	// again, because a DataNode ends one that nobody read for long.
	redialed struct {
		node   string
		offset int64
	}

	retry     retrier
	fresh     bool  // the NameNode is to be asked, whatever is known
	renewed   bool  // stale tokens were replaced since the last progress
	allBroken int   // attempts in a row at which every replica was bad
	err       error // for good
}

// replicaPatience is how long a block may wait for a good replica to be
// reported, when all that are known are bad but there should be more, or when
// they are bad by the DataNodes' silence alone: a NameNode that has just
// started learns of replicas from the DataNodes one by one.
const replicaPatience = 10 * time.Second

// replicationOf is the replication factor of a file, 1 where it is not known.
func replicationOf(info os.FileInfo) int {
	if s, ok := info.Sys().(*hdfs.FileStatus); ok && s != nil {
		return max(1, int(s.GetBlockReplication()))
	}
	return 1
}

func (c *cluster) openRange(ctx context.Context, path string, f File, offset int64) (io.ReadCloser, error) {
	r := c.newReader(ctx, &fileBlocks{c: c, f: f, path: cleanPath(path)}, offset)
	if offset == f.Size {
		return r, nil
	}
	// Find the block now, so that a missing file is this call's error.
	for {
		err := r.find()
		if err == nil {
			return r, nil
		}
		if err := r.failed(err); err != nil {
			return nil, err
		}
	}
}

func (c *cluster) newReader(ctx context.Context, blocks *fileBlocks, offset int64) *hdfsReader {
	return &hdfsReader{ctx: ctx, c: c, f: blocks.f, blocks: blocks, offset: offset,
		retry: retrier{c: c, op: "read", path: blocks.path}}
}

// find makes r.b the block at r.offset.
func (r *hdfsReader) find() (err error) {
	if r.b != nil && r.b.start <= r.offset && r.offset < r.b.end() {
		return nil
	}
	r.faults = nil
	r.b, err = r.blocks.find(r.ctx, &r.retry, r.offset, r.fresh)
	r.fresh = false
	return err
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
	for r.s == nil || len(r.s.data) == 0 {
		if err := r.advance(); err != nil {
			if r.err = r.failed(err); r.err != nil {
				return 0, r.err
			}
		}
	}
	n := copy(p, r.s.data)
	r.s.data = r.s.data[n:]
	r.offset += int64(n)
	if r.offset == r.b.end() {
		r.hangUp()
	}
	return n, nil
}

// advance gets the next bytes into r.s.data, from whichever replica has them.
// Each turn of the loop uses up a replica, or the one redial at this offset.
func (r *hdfsReader) advance() error {
	if err := r.find(); err != nil {
		return err
	}
	for {
		err := r.connect()
		if err == nil {
			err = r.await()
		}
		if err == nil {
			r.retry.succeeded()
			r.allBroken, r.renewed = 0, false
			r.c.readOnce.Store(true)
			r.reportBad()
			return nil
		}
		fault, one := err.(*replicaError) // not those inside a *blockError
		if !one || fault.kind == stale {
			return err
		}
		r.blame(fault)
	}
}

// blockError is a block of which no replica could be read.
type blockError struct {
	b      *block
	offset int64 // in the file
	faults []*replicaError
}

func (e *blockError) Error() string {
	text := fmt.Sprintf("block %s at byte %d: ", e.b.name, e.offset)
	if len(e.faults) == 0 {
		return text + "no DataNode that is up has it"
	}
	var each []string
	for _, fault := range e.faults {
		each = append(each, fault.Error())
	}
	return text + strings.Join(each, "; ")
}

// Unwrap makes the replicas' errors visible to errors.Is.
func (e *blockError) Unwrap() []error {
	var errs []error
	for _, fault := range e.faults {
		errs = append(errs, fault)
	}
	return errs
}

// broken says that every replica is bad; sure, that the bytes themselves told.
func (e *blockError) broken() (all, sure bool) {
	all, sure = len(e.faults) > 0, true
	for _, fault := range e.faults {
		all = all && fault.kind >= brokenOff
		sure = sure && fault.kind > brokenOff
	}
	return all, sure
}

// failed handles an attempt without progress: nil means try again.
func (r *hdfsReader) failed(err error) error {
	r.hangUp()
	r.b, r.fresh = nil, true
	var none *blockError
	var fault *replicaError
	switch {
	case errors.As(err, &none):
		all, sure := none.broken()
		if !all {
			r.allBroken = 0
			break
		}
		r.allBroken++
		if errors.Is(err, errNoChecksums) {
			err = fmt.Errorf("%w; data.hdfs.allow_missing_checksums reads it unverified", err)
		}
		corrupt := &CorruptError{URI: r.f.URI, Block: none.b.name, Offset: none.offset, Err: err}
		if r.allBroken >= 2 { // once more, to be sure
			if sure && len(none.faults) >= none.b.wanted || time.Since(r.retry.since) > replicaPatience {
				return corrupt
			}
		}
		if final := r.retry.wait(r.ctx, err); final != nil && r.ctx.Err() == nil {
			return corrupt
		} else {
			return final
		}
	case errors.As(err, &fault) && fault.kind == stale:
		r.c.keys.forget()
		if !r.renewed {
			r.renewed = true
			return r.ctx.Err()
		}
	}
	return r.retry.wait(r.ctx, err)
}

// hangUp ends the connection.
func (r *hdfsReader) hangUp() {
	if r.s != nil {
		r.s.close()
		r.s = nil
	}
}

// Close implements io.Closer.
func (r *hdfsReader) Close() error {
	if r.err == nil {
		r.err = errors.New("source: read after Close")
	}
	r.hangUp()
	return nil
}
