package hadoop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"aibox/reader/source/internal/hadoop/internal/sasl"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// blockStream reads one replica of a block from its DataNode. A request
//
//	version 00 1C | operation 51 | OpReadBlockProto, after its length
//
// is answered by a BlockOpResponseProto and by packets:
//
//	4 + length of checksums and data, 4 bytes | length of header, 2 bytes | PacketHeaderProto | checksums | data
//
// The data of a packet are divided into chunks (512 bytes, usually), each of which has
// a checksum of 4 bytes. The stream hands out no bytes whose checksum it has not
// compared.
type blockStream struct {
	b    *block
	rep  replica
	conn net.Conn
	stop func() bool // ends the binding to the reader's context
	r    *bufio.Reader

	table *crc32.Table // nil: the replica has no checksums
	chunk int          // bytes of data per checksum

	at     int64  // offset in the block of the next packet
	from   int64  // offset in the block of the first byte that is wanted
	packet int    // bytes of the packet at the front of r
	data   []byte // the verified bytes of that packet that were not handed out yet
	err    error  // the fault found after data; it is returned once data is handed out

	// These count the time spent waiting and the bytes received since tooSlow last
	// examined them.
	waited time.Duration
	got    int64
}

const (
	// dataNodeBufferBytes holds two packets of the usual size, 64 KiB.
	dataNodeBufferBytes = 160 << 10
	// maxPacketBytes is Hadoop's own limit.
	maxPacketBytes = 16 << 20
	// maxChunkBytes bounds the chunk size that a DataNode may announce.
	maxChunkBytes = 16 << 20
)

// faultKind says what a failure means for a replica and its DataNode.
type faultKind int

const (
	// unreachable: the DataNode does not answer, or not in time.
	unreachable faultKind = iota
	// refused: the DataNode answers, but does not serve this replica.
	refused
	// stale: the DataNode does not accept the block token, or the encryption key.
	stale
	// brokenOff: the DataNode began to serve the replica and hung up.
	brokenOff
	// unverified: the DataNode has lost the checksums of the replica.
	unverified
	// bad: the replica is not what was written.
	bad
)

// replicaError says why a replica could not be read.
type replicaError struct {
	rep          replica
	kind         faultKind
	err          error
	reported     bool // it was reported to the NameNode
	earlyTimeout bool // the DataNode was given less time than the time limit
}

func (e *replicaError) Error() string {
	what := map[faultKind]string{unreachable: "DataNode %s failed", refused: "DataNode %s refused", brokenOff: "bad replica on %s",
		unverified: "bad replica on %s", bad: "bad replica on %s", stale: "DataNode %s"}[e.kind]
	return fmt.Sprintf(what+": %v", e.rep.node, e.err)
}

func (e *replicaError) Unwrap() error { return e.err }

var (
	errChecksum    = errors.New("its bytes differ from their checksum")
	errNoChecksums = errors.New("its checksums are missing, so its bytes cannot be verified")
	errBrokenOff   = errors.New("the DataNode closed the connection instead of sending the bytes")
	errHungUp      = errors.New("the DataNode closed the connection before it answered")
)

// openBlock asks a DataNode for a replica from offset (in the block) on. The
// DataNode must have answered within patience. A replica without checksums is
// refused unless unchecked is set. Errors are of type *replicaError, or the
// context's.
func (c *Cluster) openBlock(ctx context.Context, b *block, rep replica, offset int64, patience time.Duration, unchecked bool) (*blockStream, error) {
	fail := func(kind faultKind, err error) (*blockStream, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &replicaError{rep: rep, kind: kind, err: err}
	}
	deadline := time.Now().Add(patience)
	d := net.Dialer{Deadline: deadline}
	conn, err := d.DialContext(ctx, "tcp", rep.node)
	if err != nil {
		return fail(unreachable, err)
	}
	s := &blockStream{b: b, rep: rep, conn: conn, from: offset}
	s.stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // a read that is waiting gets the error
	if err := conn.SetDeadline(deadline); err != nil {
		s.close()
		return fail(unreachable, err)
	}
	kind, err := s.request(c, offset, unchecked)
	if err != nil {
		s.close()
		return fail(kind, err)
	}
	return s, nil
}

// request performs the handshake, asks for the block and reads the answer.
func (s *blockStream) request(c *Cluster, offset int64, unchecked bool) (faultKind, error) {
	secured, err := c.secure(s.conn, s.b, s.rep.port())
	if errors.Is(err, sasl.ErrUnknownKey) {
		return stale, err
	}
	if err != nil {
		return unreachable, noAnswer(err)
	}
	s.r = bufio.NewReaderSize(secured.R, dataNodeBufferBytes)

	op := wire.New("OpReadBlockProto")
	op.Set("header", s.b.header("aibox")).Set("offset", uint64(offset)).Set("len", uint64(s.b.length-offset))
	req, err := wire.AppendDelimited([]byte{0x00, 0x1C, 0x51}, op)
	if err != nil {
		return unreachable, err
	}
	if _, err := s.conn.Write(secured.Seal(req)); err != nil {
		return unreachable, err
	}
	resp := wire.New("BlockOpResponseProto")
	if err := wire.ReadDelimited(s.r, resp); err != nil {
		return unreachable, noAnswer(err)
	}
	switch status := resp.Enum("status"); status {
	case "SUCCESS":
	case "ERROR_ACCESS_TOKEN":
		return stale, errors.New("the block token is no longer valid")
	default:
		err := fmt.Errorf("%s: %s", status, resp.Text("message"))
		if strings.Contains(err.Error(), "don't match block") { // the DataNode knows that its replica is too short
			return bad, err
		}
		return refused, err
	}

	info := resp.In("readOpChecksumInfo")
	checksum := info.In("checksum")
	s.chunk = int(checksum.Int("bytesPerChecksum"))
	switch checksum.Enum("type") {
	case "CHECKSUM_NULL":
		if !unchecked {
			return unverified, errNoChecksums
		}
	case "CHECKSUM_CRC32":
		s.table = crc32.IEEETable
	case "CHECKSUM_CRC32C":
		s.table = crc32.MakeTable(crc32.Castagnoli)
	default:
		return refused, fmt.Errorf("its checksums are of an unknown type, %s", checksum.Enum("type"))
	}
	s.at = info.Int("chunkOffset")
	if s.chunk < 1 || s.chunk > maxChunkBytes || s.at < 0 || s.at > offset {
		return bad, fmt.Errorf("it announced chunks of %d bytes from byte %d on, but byte %d was requested", s.chunk, s.at, offset)
	}
	return 0, nil
}

// noAnswer names the cause when the other side hung up.
func noAnswer(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errHungUp
	}
	return err
}

// next waits for the next packet, for limit at most. After os.ErrDeadlineExceeded it may be called
// again; any other error, which is a *replicaError, ends the stream. REQUIRES: data is empty.
func (s *blockStream) next(limit time.Duration) error {
	if s.err != nil {
		return s.err
	}
	err := s.receive(limit)
	if err == nil {
		return nil
	}
	var fault *replicaError // declared here, since it is allocated on the heap
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &fault):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return s.fault(brokenOff, errBrokenOff)
	}
	return s.fault(unreachable, err)
}

func (s *blockStream) fault(kind faultKind, err error) error {
	return &replicaError{rep: s.rep, kind: kind, err: err}
}

// minBytesPerSecond is the rate below which a DataNode is too slow: a healthy disk or network is a
// hundred times as fast.
const minBytesPerSecond = 1 << 20

// tooSlow reports whether the DataNode was slower than minBytesPerSecond. It returns false until the
// reader has waited for window in total.
func (s *blockStream) tooSlow(window time.Duration) bool {
	if s.waited < window {
		return false
	}
	slow := float64(s.got) < minBytesPerSecond*s.waited.Seconds()
	s.waited, s.got = 0, 0
	return slow
}

func (s *blockStream) close() {
	s.stop()
	_ = s.conn.Close() // a failed close loses nothing, since no data were written
}
