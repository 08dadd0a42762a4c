package hadoop

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"aibox/internal/panics"
	"aibox/reader/source/internal/hadoop/internal/sasl"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// pipeline writes one block to the first DataNode of the NameNode's list, which
// forwards everything to the second one, and so on. A request
//
//	version 00 1C | operation 50 | OpWriteBlockProto, after its length
//
// is answered by a BlockOpResponseProto when all of them are ready. Then packets are
// sent, each of which, except the last, holds whole chunks,
//
//	4 + length of checksums and data, 4 bytes | length of header, 2 bytes | PacketHeaderProto | checksums | data
//
// and a PipelineAckProto comes back for each, with the status of every DataNode.
type pipeline struct {
	b    *block
	conn *patientConn
	r    *bufio.Reader
	seal func([]byte) []byte
}

const (
	writeChunkBytes  = 512
	writePacketBytes = 64 << 10
	// maxSealBytes is how much is signed or encrypted at a time: a DataNode accepts
	// frames of up to 64 KiB.
	maxSealBytes = 32 << 10
)

// pipelineError is the failure of a DataNode while a block is written.
type pipelineError struct {
	node  int  // index in the block's list
	stale bool // the encryption key or the token was not valid, which is no fault of the DataNode
	err   error
}

func (e *pipelineError) Error() string { return e.err.Error() }
func (e *pipelineError) Unwrap() error { return e.err }

// writeBlock writes length bytes of data as block b. Its errors are of type
// *pipelineError, except those of reading data.
func (c *Cluster) writeBlock(ctx context.Context, b *block, holder string, data io.Reader, length int64) error {
	first := b.replicas[0].node
	d := net.Dialer{Timeout: c.timeout}
	raw, err := d.DialContext(ctx, "tcp", first)
	if err != nil {
		return &pipelineError{err: err}
	}
	p := &pipeline{b: b, conn: &patientConn{TCPConn: raw.(*net.TCPConn), timeout: c.timeout}}
	defer func() { _ = p.conn.Close() }() // everything was acknowledged, or the block is abandoned
	defer context.AfterFunc(ctx, func() { _ = p.conn.Close() })()
	if err := p.open(c, holder); err != nil {
		return err
	}
	acks := make(chan error, 1) // receives nil after the last acknowledgement, or an error, which closes the connection
	packets := (length+writePacketBytes-1)/writePacketBytes + 1
	go func() {
		err := panics.Do("waiting for DataNodes", func() error { return p.acknowledge(packets) })
		if err != nil {
			_ = p.conn.Close() // the sender stops
		}
		acks <- err
	}()
	sent := p.send(data, length)
	if sent != nil && errors.As(sent, new(*pipelineError)) {
		// An acknowledgement may name the DataNode that failed, so its error is preferred to
		// sent. It arrives, or the connection ends, within the time limit.
		if err := <-acks; err != nil {
			return err
		}
		return sent
	}
	if sent != nil {
		_ = p.conn.Close()
		<-acks
		return sent
	}
	return <-acks
}

// open performs the handshake and asks all DataNodes to receive the block.
func (p *pipeline) open(c *Cluster, holder string) error {
	fail := func(err error) error { return &pipelineError{err: noAnswer(err)} }
	p.conn.unanswered.Add(1)
	secured, err := c.secure(p.conn, p.b, p.b.replicas[0].port())
	if err != nil {
		return &pipelineError{stale: errors.Is(err, sasl.ErrUnknownKey), err: noAnswer(err)}
	}
	p.r, p.seal = bufio.NewReader(secured.R), secured.Seal

	op := p.request(holder)
	req, err := wire.AppendDelimited([]byte{0x00, 0x1C, 0x50}, op)
	if err != nil {
		return err
	}
	if _, err := p.conn.Write(p.seal(req)); err != nil {
		return fail(err)
	}
	resp := wire.New("BlockOpResponseProto")
	if err := wire.ReadDelimited(p.r, resp); err != nil {
		return fail(err)
	}
	status := resp.Enum("status")
	if status == "SUCCESS" {
		p.conn.unanswered.Add(-1)
		return nil
	}
	err = fmt.Errorf("%s: %s", status, resp.Text("message"))
	bad := slices.IndexFunc(p.b.replicas, func(r replica) bool { return r.transfer == resp.Text("firstBadLink") })
	if bad >= 0 {
		err = fmt.Errorf("%s: the DataNode before it in the pipeline cannot reach it", status)
	}
	return &pipelineError{node: max(0, bad), stale: status == "ERROR_ACCESS_TOKEN", err: err}
}

// request makes the OpWriteBlockProto.
func (p *pipeline) request(holder string) wire.Message {
	located := p.b.located
	op := wire.New("OpWriteBlockProto")
	checksum := wire.New("ChecksumProto")
	checksum.SetEnum("type", "CHECKSUM_CRC32C").Set("bytesPerChecksum", uint32(writeChunkBytes))
	op.Set("header", p.b.header(holder)).Set("requestedChecksum", checksum).SetEnum("stage", "PIPELINE_SETUP_CREATE")
	op.Set("pipelineSize", uint32(len(p.b.replicas)))
	op.Set("minBytesRcvd", uint64(0)).Set("maxBytesRcvd", uint64(0)).Set("latestGenerationStamp", uint64(0))
	// The first DataNode is told its own storage and those of the others.
	for _, to := range []struct{ from, first, rest string }{
		{"locs", "", "targets"},
		{"storageTypes", "storageType", "targetStorageTypes"},
		{"storageIDs", "storageId", "targetStorageIds"},
	} {
		all := located.Value(to.from).List()
		for i := range all.Len() {
			if i > 0 {
				op.Elements(to.rest).Append(all.Get(i))
			} else if to.first != "" {
				op.Set(to.first, all.Get(i).Interface())
			}
		}
	}
	return op
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// send sends the data and an empty last packet.
func (p *pipeline) send(data io.Reader, length int64) error {
	const prefix = 4 + 2
	header := appendPacketHeader(nil, 0, 0, false, 0)
	sums := prefix + len(header)
	body := sums + writePacketBytes/writeChunkBytes*4
	buf := make([]byte, body+writePacketBytes)
	offset := int64(0)
	for seqno := int64(0); ; seqno++ {
		n := int(min(writePacketBytes, length-offset))
		chunks := (n + writeChunkBytes - 1) / writeChunkBytes
		packet := buf[:sums+4*chunks+n]
		bytes := packet[sums+4*chunks:]
		if _, err := io.ReadFull(data, bytes); err != nil {
			return fmt.Errorf("read the local copy: %w", hideEOF(err))
		}
		binary.BigEndian.PutUint32(packet, uint32(4+4*chunks+n))
		binary.BigEndian.PutUint16(packet[4:], uint16(len(header)))
		appendPacketHeader(packet[prefix:prefix], offset, seqno, n == 0, n)
		for i := range chunks {
			chunk := bytes[i*writeChunkBytes : min((i+1)*writeChunkBytes, n)]
			binary.BigEndian.PutUint32(packet[sums+4*i:], crc32.Checksum(chunk, castagnoli))
		}
		p.conn.unanswered.Add(1)
		for len(packet) > 0 {
			part := packet[:min(maxSealBytes, len(packet))]
			packet = packet[len(part):]
			if _, err := p.conn.Write(p.seal(part)); err != nil {
				return &pipelineError{err: err}
			}
		}
		if n == 0 {
			return nil
		}
		offset += int64(n)
	}
}

// appendPacketHeader appends a PacketHeaderProto. All headers have the same length.
func appendPacketHeader(b []byte, offset, seqno int64, last bool, length int) []byte {
	b = protowire.AppendFixed64(protowire.AppendTag(b, 1, protowire.Fixed64Type), uint64(offset))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), uint64(seqno))
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), protowire.EncodeBool(last))
	return protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), uint32(length))
}

// acknowledge waits until every DataNode has acknowledged every packet. If no acknowledgement comes
// in time, and no bytes move, the first DataNode is assumed to hang, since it is the only one that
// is connected to us.
func (p *pipeline) acknowledge(packets int64) error {
	for seqno := int64(0); seqno < packets; {
		ack := wire.New("PipelineAckProto")
		if err := wire.ReadDelimited(p.r, ack); err != nil {
			return &pipelineError{err: noAnswer(err)}
		}
		replies := ack.Value("reply").List()
		for i := range replies.Len() {
			if n := replies.Get(i).Enum(); n != 0 {
				return &pipelineError{node: min(i, len(p.b.replicas)-1), err: fmt.Errorf("the DataNode reports %s", ack.EnumName("reply", n))}
			}
		}
		if got := ack.Value("seqno").Int(); got != seqno {
			return &pipelineError{err: fmt.Errorf("packet %d was acknowledged where packet %d was expected", got, seqno)}
		}
		seqno++
		p.conn.unanswered.Add(-1)
	}
	return nil
}

// port returns the port of the replica's DataNode.
func (r replica) port() int {
	_, port, _ := net.SplitHostPort(r.node)
	n, _ := strconv.Atoi(port) // newBlock wrote the address, so the port is a number
	return n
}
