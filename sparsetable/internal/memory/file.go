package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"aibox/internal/errkind"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// The package documentation has a diagram of the format.
const (
	snapshotVersion = 1  // for float32 values
	version16       = 2  // for other values: same format, but older programs must not read the values as float32
	headerBytes     = 32 // without record and checksum
	footerBytes     = 4 + 8 + 4
	crcBytes        = 4
	blockTarget     = 256 << 10 // bytes of rows: large enough for a disk to write at its full rate
	// maxRecordBytes bounds what a reader allocates if the header is damaged.
	maxRecordBytes = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockRows is the number of rows in every block but the last.
func blockRows(l layout.Layout) int { return max(1, blockTarget/layout.EntryBytes(l)) }

// blockBytes is the size of a full block.
func blockBytes(l layout.Layout) int { return 4 + blockRows(l)*layout.EntryBytes(l) + crcBytes }

// snapshotWriter encodes a snapshot. Rows must come in ascending key order.
type snapshotWriter struct {
	w      io.Writer
	layout layout.Layout
	block  []byte
	rows   int // in block
	total  int64
	bytes  int64 // written
}

func newSnapshotWriter(w io.Writer, l layout.Layout, id uint64, record []byte) (*snapshotWriter, error) {
	if len(record) > maxRecordBytes {
		return nil, fmt.Errorf("sparsetable: snapshot record of %d bytes: at most %d are possible", len(record), maxRecordBytes)
	}
	s := &snapshotWriter{w: w, layout: l, block: make([]byte, 4, blockBytes(l))}
	h := make([]byte, 0, headerBytes+len(record)+crcBytes)
	h = append(h, layout.Magic...)
	h = binary.LittleEndian.AppendUint32(h, snapshotVersionOf(l))
	h = binary.LittleEndian.AppendUint32(h, layout.Packed(l))
	h = binary.LittleEndian.AppendUint32(h, uint32(l.StateDim))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(record)))
	h = binary.LittleEndian.AppendUint64(h, id)
	h = append(h, record...)
	return s, s.write(appendCRC(h))
}

// snapshotVersionOf is the version of the format for rows of layout l.
func snapshotVersionOf(l layout.Layout) uint32 {
	if l.Format == layout.Float32 {
		return snapshotVersion
	}
	return version16
}

func appendCRC(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (s *snapshotWriter) write(b []byte) error {
	n, err := s.w.Write(b)
	s.bytes += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// full reports whether the block must be flushed before the next add.
func (s *snapshotWriter) full() bool { return s.rows == blockRows(s.layout) }

// add puts a row into the block. REQUIRES: !full().
func (s *snapshotWriter) add(key uint64, row []float32) {
	s.block = layout.AppendEntry(s.block, key, row)
	s.rows++
}

// flush writes the block, if it holds anything.
func (s *snapshotWriter) flush() error {
	if s.rows == 0 {
		return nil
	}
	binary.LittleEndian.PutUint32(s.block, uint32(s.rows))
	if err := s.write(appendCRC(s.block)); err != nil {
		return err
	}
	s.total += int64(s.rows)
	s.block, s.rows = s.block[:4], 0
	return nil
}

// finish writes the last block and the footer.
func (s *snapshotWriter) finish() error {
	if err := s.flush(); err != nil {
		return err
	}
	f := make([]byte, 4, footerBytes)
	f = binary.LittleEndian.AppendUint64(f, uint64(s.total))
	return s.write(appendCRC(f))
}

// snapshotReader decodes a snapshot, checking everything.
type snapshotReader struct {
	f    File
	name string
	info contract.SnapshotInfo

	off   int64  // of the next block or the footer
	block []byte // its bytes
	at    int64  // offset of block
	rows  int    // left in block
	rest  []byte // of block, not yet decoded
	row   []float32
	prev  uint64
	seen  int64
}

func (r *snapshotReader) corrupt(off int64, format string, args ...any) error {
	return &contract.CorruptionError{File: r.name, Offset: off, Reason: fmt.Sprintf(format, args...)}
}

// readAt fills b, or returns a *CorruptionError if the file is too short.
func (r *snapshotReader) readAt(b []byte, off int64) error {
	n, err := r.f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) || err == nil {
		return r.corrupt(off, "the file ends after %d of %d bytes", n, len(b))
	}
	return fmt.Errorf("sparsetable: read %s at offset %d: %w", r.name, off, err)
}

// newSnapshotReader reads and checks header and footer. id is the one in the file's name.
func newSnapshotReader(f File, name string, id uint64) (*snapshotReader, error) {
	r := &snapshotReader{f: f, name: name}
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("sparsetable: size of %s: %w", name, err)
	}
	if size < headerBytes+crcBytes+footerBytes {
		return nil, r.corrupt(0, "%d bytes are too few for a snapshot", size)
	}
	h := make([]byte, headerBytes)
	if err := r.readAt(h, 0); err != nil {
		return nil, err
	}
	if string(h[:8]) != layout.Magic {
		return nil, r.corrupt(0, "it does not begin with %q", layout.Magic)
	}
	version := binary.LittleEndian.Uint32(h[8:])
	recordLen := int64(binary.LittleEndian.Uint32(h[20:]))
	if recordLen > maxRecordBytes || headerBytes+recordLen+crcBytes+footerBytes > size {
		return nil, r.corrupt(0, "a record of %d bytes in a file of %d", recordLen, size)
	}
	h = append(h, make([]byte, recordLen+crcBytes)...)
	if err := r.readAt(h[headerBytes:], headerBytes); err != nil {
		return nil, err
	}
	if !checkCRC(h) {
		return nil, r.corrupt(0, "checksum of the header does not match")
	}
	if version > version16 {
		return nil, fmt.Errorf("sparsetable: %s: %w", name, errkind.Newer(int(version), version16))
	}
	l := layout.Unpacked(binary.LittleEndian.Uint32(h[12:]), binary.LittleEndian.Uint32(h[16:]))
	if err := l.Validate(); err != nil {
		return nil, r.corrupt(0, "%v", err)
	}
	if version != snapshotVersionOf(l) {
		return nil, r.corrupt(0, "version %d cannot have rows of %v", version, l)
	}
	if got := binary.LittleEndian.Uint64(h[24:]); got != id {
		return nil, r.corrupt(0, "the header belongs to snapshot %d", got)
	}
	r.off = int64(len(h))

	foot := make([]byte, footerBytes)
	if err := r.readAt(foot, size-footerBytes); err != nil {
		return nil, err
	}
	total := binary.LittleEndian.Uint64(foot[4:])
	if !checkCRC(foot) || binary.LittleEndian.Uint32(foot) != 0 {
		return nil, r.corrupt(size-footerBytes, "the file does not end with a footer")
	}
	if want := fileBytes(l, r.off, total); want != uint64(size) {
		return nil, r.corrupt(size-footerBytes, "a file of %d rows should have %d bytes, but this one has %d", total, want, size)
	}
	r.info = contract.SnapshotInfo{ID: id, Rows: int64(total), Bytes: size, Layout: l, Record: h[headerBytes : headerBytes+recordLen]}
	r.row = make([]float32, l.Words())
	return r, nil
}

// fileBytes is the size of a file with a header of that size and total rows. For an impossible
// total it returns a size that no file has.
func fileBytes(l layout.Layout, header int64, total uint64) uint64 {
	entry, rows := uint64(layout.EntryBytes(l)), uint64(blockRows(l))
	if total > math.MaxInt64/(entry+4+crcBytes) {
		return math.MaxUint64
	}
	blocks := (total + rows - 1) / rows
	return uint64(header) + total*entry + blocks*(4+crcBytes) + footerBytes
}

func checkCRC(b []byte) bool {
	n := len(b) - crcBytes
	return crc32.Checksum(b[:n], castagnoli) == binary.LittleEndian.Uint32(b[n:])
}

// Next implements RowSource.
func (r *snapshotReader) Next() (key uint64, row []float32, err error) {
	if r.rows == 0 {
		if err := r.nextBlock(); err != nil {
			return 0, nil, err
		}
	}
	key = binary.LittleEndian.Uint64(r.rest)
	words := r.rest[8:]
	for i := range r.row {
		r.row[i] = math.Float32frombits(binary.LittleEndian.Uint32(words[4*i:]))
	}
	if r.seen > 0 && key <= r.prev {
		return 0, nil, r.corrupt(r.at, "key %d follows key %d", key, r.prev)
	}
	if r.info.Layout.Stats(r.row).Count == 0 {
		return 0, nil, r.corrupt(r.at, "the row of key %d was never trained", key)
	}
	r.prev = key
	r.seen++
	r.rows--
	r.rest = r.rest[layout.EntryBytes(r.info.Layout):]
	return key, r.row, nil
}

// nextBlock reads and checks the next block. It returns io.EOF at the footer, which
// newSnapshotReader has checked.
func (r *snapshotReader) nextBlock() error {
	left := r.info.Rows - r.seen
	if left == 0 {
		return io.EOF
	}
	l := r.info.Layout
	n := int(min(left, int64(blockRows(l))))
	size := 4 + n*layout.EntryBytes(l) + crcBytes
	if r.block == nil {
		r.block = make([]byte, size) // the first is the largest
	}
	b := r.block[:size]
	if err := r.readAt(b, r.off); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(b); got != uint32(n) {
		return r.corrupt(r.off, "a block of %d rows where one of %d was expected", got, n)
	}
	if !checkCRC(b) {
		return r.corrupt(r.off, "checksum of the block does not match")
	}
	r.at = r.off
	r.off += int64(size)
	r.rows, r.rest = n, b[4:size-crcBytes]
	return nil
}
