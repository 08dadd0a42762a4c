package hadoop

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"aibox/reader/source/internal/fsys"
)

// reader reads [offset, f.Size) of one file, block after block. It holds a
// connection to one DataNode, and asks a NameNode only where blocks are.
//
// If a replica fails, reading goes on with the next one at the current offset. When
// all replicas of a block have failed, that is one failed attempt: after a pause the
// NameNode is asked again where the block is (a DataNode may be back, and tokens and
// keys are new), until the retry time is used up.
type reader struct {
	ctx    context.Context
	c      *Cluster
	f      fsys.File
	blocks *fileBlocks
	offset int64 // of the next byte to hand out

	b     *block       // the block that holds offset; nil: it is not known yet
	s     *blockStream // nil: none is open
	group *group       // instead of s if b is a block group; nil: none is open
	// spare says that other blocks of a group can replace b, so b is given up if its DataNodes
	// are slow.
	spare  bool
	faults []*replicaError
	// patient says that each replica gets the whole time limit, even if there are others.
	patient bool
	// redialed is the place where a connection last broke off. At the same place it
	// is dialed again only once, because a DataNode also closes a connection from
	// which nobody has read for long.
	redialed struct {
		node   string
		offset int64
	}

	stream    cipher.Stream // decrypts from offset on; nil: the file is not encrypted, or no block is known yet
	retry     retrier
	fresh     bool  // the NameNode is to be asked, even if the block is known
	renewed   bool  // stale tokens were replaced since the last progress: refusing the new ones is a failure
	allBroken int   // attempts in a row in which every replica was bad
	err       error // the final error, which every later read returns
}

// replicaPatience is how long to wait for the NameNode to report a good replica of a block if all
// known ones are bad but there should be more, or if some count as bad only because their DataNodes
// hung up: a NameNode that has just started learns of replicas from the DataNodes one by one.
const replicaPatience = 10 * time.Second

// replicationOf returns the replication factor of a file, or 1 if it is unknown.
func replicationOf(info os.FileInfo) int {
	if s, ok := info.Sys().(*hdfs.FileStatus); ok && s != nil {
		return max(1, int(s.GetBlockReplication()))
	}
	return 1
}

func (c *Cluster) OpenRange(ctx context.Context, path string, f fsys.File, offset int64) (io.ReadCloser, error) {
	r := c.newReader(ctx, &fileBlocks{c: c, f: f, path: CleanPath(path)}, offset)
	if offset == f.Size {
		return r, nil
	}
	// The block is looked up now, so that a missing file is an error of this call.
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

func (c *Cluster) newReader(ctx context.Context, blocks *fileBlocks, offset int64) *reader {
	return &reader{ctx: ctx, c: c, f: blocks.f, blocks: blocks, offset: offset,
		retry: retrier{c: c, op: "read", path: blocks.path}}
}

// find makes r.b the block at r.offset.
func (r *reader) find() (err error) {
	if r.b != nil && r.b.start <= r.offset && r.offset < r.b.end() {
		return nil
	}
	r.faults, r.patient = nil, false
	r.b, err = r.blocks.find(r.ctx, &r.retry, r.offset, r.fresh)
	r.fresh = false
	if err == nil && r.b.zone != nil && r.stream == nil {
		r.stream, err = r.blocks.decrypt(r.ctx, r.b.zone, r.offset)
	}
	return err
}

func (r *reader) Read(p []byte) (int, error) {
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
	for len(r.ready()) == 0 {
		if err := r.advance(); err != nil {
			if r.err = r.failed(err); r.err != nil {
				return 0, r.err
			}
		}
	}
	n := copy(p, r.ready())
	if r.stream != nil {
		r.stream.XORKeyStream(p[:n], p[:n])
	}
	r.take(n)
	return n, nil
}

// ready returns the bytes at offset that have arrived.
func (r *reader) ready() []byte {
	switch {
	case r.group != nil:
		return r.group.ready
	case r.s != nil:
		return r.s.data
	}
	return nil
}

// take removes n of the ready bytes, which were handed out.
func (r *reader) take(n int) {
	if r.group != nil {
		r.group.take(n)
	} else {
		r.s.data = r.s.data[n:]
	}
	r.offset += int64(n)
	if r.offset == r.b.end() {
		r.hangUp()
	}
}

// advance makes the next bytes ready.
func (r *reader) advance() error {
	err := r.find()
	if err != nil {
		return err
	}
	if r.b.code != nil {
		err = r.advanceGroup()
	} else {
		err = r.advanceBlock()
	}
	if err == nil {
		r.retry.succeeded()
		r.allBroken, r.renewed = 0, false
		r.c.readOnce.Store(true)
	}
	return err
}

// advanceBlock gets the next bytes into r.s.data, from any replica that has them. Each
// turn of the loop uses up a replica, or the one redial at this offset.
func (r *reader) advanceBlock() error {
	for {
		err := r.connect()
		if err == nil {
			err = r.await()
		}
		if err == nil {
			if r.s.table != nil {
				r.reportBad()
			}
			return nil
		}
		fault, one := err.(*replicaError) // errors.As would also find those inside a *blockError
		if !one || fault.kind == stale && !r.renewed {
			return err
		}
		r.rejectReplica(fault)
	}
}

// blockError says why no replica of a block, or too few blocks of a group, could be read.
type blockError struct {
	b      *block
	offset int64 // in the file
	faults []*replicaError
	lost   []error // of the blocks of a group that could not be read
}

func (e *blockError) Error() string {
	text := fmt.Sprintf("block %s at byte %d: ", e.b.name, e.offset)
	var each []string
	for _, err := range e.lost {
		each = append(each, err.Error())
	}
	switch {
	case e.lost != nil:
		text = fmt.Sprintf("%d of the %d blocks of group %s at byte %d cannot be read, and %d are needed: ",
			len(e.lost), len(e.b.units), e.b.name, e.offset, e.b.code.data)
	case len(e.faults) == 0:
		return text + "no running DataNode has it"
	default:
		for _, fault := range e.faults {
			each = append(each, fault.Error())
		}
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

// broken reports whether every replica is bad (all), and whether their bytes prove it (sure).
func (e *blockError) broken() (all, sure bool) {
	all, sure = len(e.faults) > 0, true
	for _, fault := range e.faults {
		all = all && fault.kind >= brokenOff
		sure = sure && fault.kind > brokenOff
	}
	return all, sure
}

// failed handles an attempt without progress. It returns nil if the attempt is to be repeated.
func (r *reader) failed(err error) error {
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
		corrupt := &fsys.CorruptError{URI: r.f.URI, Block: none.b.name, Offset: none.offset, Err: err}
		if r.allBroken >= 2 { // the first time, the replicas are read again to be sure
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

// hangUp closes the reader's connections.
func (r *reader) hangUp() {
	if r.group != nil {
		r.group.keep(-1)
		r.group = nil
	}
	if r.s != nil {
		r.s.close()
		r.s = nil
	}
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if r.err == nil {
		r.err = errors.New("source: read after Close")
	}
	r.hangUp()
	return nil
}
