package catalog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"aibox/internal/errkind"
)

// A snapshot's record is a sequence of unsigned varints (LEB128) and byte strings (the length as a
// varint, and the bytes). Signed numbers are zigzag-encoded.
//
//	version    3
//	id, slots, rows (signed), page bytes (signed)
//	files      n, then n times: id, dir, bytes (signed), live bytes (signed),
//	           incarnation (not in version 1), begun (not in versions 1 and 2)
//	deltas     n, then n times: dir, name, bytes (signed), rows (signed) and, not in
//	           versions 1 and 2, snapshot, dirty bytes (signed), dirty rows (signed),
//	           seq, n, then n times: file, bytes (signed)
//	counters   n, then n times: name, value (signed); names ascend
//	record     byte string
//	versions   n, then n times: id of the snapshot minus that of the page
//	crc        uint32, little-endian: CRC-32C of everything before
//
// The version also covers all files that a snapshot refers to, and its stream. A change of any of
// these formats must raise it, so that older programs report that they are too old: they would take
// a format that they do not know for damage. So the version and the checksum stay where they are.
const recordVersion = 3

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errChecksum = errors.New("checksum does not match")
	errRecord   = errors.New("cannot be decoded")
)

func encodeSnapshot(s *kept) []byte {
	b := make([]byte, 0, 256+len(s.Record)+32*len(s.Files)+2*len(s.versions))
	b = binary.AppendUvarint(b, recordVersion)
	b = binary.AppendUvarint(b, s.ID)
	b = binary.AppendUvarint(b, uint64(s.Slots))
	b = binary.AppendVarint(b, s.Rows)
	b = binary.AppendVarint(b, s.PageBytes)
	b = binary.AppendUvarint(b, uint64(len(s.Files)))
	for _, f := range s.Files {
		b = binary.AppendUvarint(b, uint64(f.ID))
		b = binary.AppendUvarint(b, uint64(f.Dir))
		b = binary.AppendVarint(b, f.Bytes)
		b = binary.AppendVarint(b, f.LiveBytes)
		b = binary.AppendUvarint(b, f.Incarnation)
		b = binary.AppendUvarint(b, f.Begun)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Deltas)))
	for _, d := range s.Deltas {
		b = binary.AppendUvarint(b, uint64(d.Dir))
		b = appendBytes(b, d.Name)
		b = binary.AppendVarint(b, d.Bytes)
		b = binary.AppendVarint(b, d.Rows)
		b = binary.AppendUvarint(b, d.Snapshot)
		b = binary.AppendVarint(b, d.DirtyBytes)
		b = binary.AppendVarint(b, d.DirtyRows)
		b = binary.AppendUvarint(b, d.Seq)
		b = binary.AppendUvarint(b, uint64(len(d.Growing)))
		for _, f := range d.Growing {
			b = binary.AppendUvarint(b, uint64(f.File))
			b = binary.AppendVarint(b, f.Bytes)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Counters)))
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		b = appendBytes(b, name)
		b = binary.AppendVarint(b, s.Counters[name])
	}
	b = appendBytes(b, s.Record)
	b = binary.AppendUvarint(b, uint64(len(s.versions)))
	for _, v := range s.versions {
		b = binary.AppendUvarint(b, s.ID-v)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decodeSnapshot reads what encodeSnapshot made. Nothing of the result lies in
// b. The error is errChecksum, errRecord or an errkind.ErrNewer.
func decodeSnapshot(b []byte) (*kept, error) {
	if len(b) < 4 || crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, errChecksum
	}
	d := decoder{b: b[:len(b)-4]}
	version := d.uvarint(math.MaxInt32)
	switch {
	case version == 0:
		return nil, errRecord
	case version > recordVersion:
		return nil, errkind.Newer(int(version), recordVersion)
	}
	s := &kept{}
	s.ID = d.uvarint(1<<64 - 1)
	s.Slots = uint32(d.uvarint(1<<32 - 1))
	s.Rows = d.varint()
	s.PageBytes = d.varint()
	for range d.count(4) {
		f := File{ID: uint32(d.uvarint(1<<32 - 1)), Dir: uint16(d.uvarint(1<<16 - 1)), Bytes: d.varint(), LiveBytes: d.varint()}
		if version > 1 {
			f.Incarnation = d.uvarint(1<<64 - 1)
		}
		if version > 2 {
			f.Begun = d.uvarint(1<<64 - 1)
		}
		s.Files = append(s.Files, f)
	}
	for range d.count(4) {
		x := Delta{Dir: uint16(d.uvarint(1<<16 - 1)), Name: string(d.bytes()), Bytes: d.varint(), Rows: d.varint()}
		if version > 2 {
			d.instant(&x)
		}
		s.Deltas = append(s.Deltas, x)
	}
	for range d.count(2) {
		if s.Counters == nil {
			s.Counters = map[string]int64{}
		}
		name := string(d.bytes())
		s.Counters[name] = d.varint()
	}
	s.Record = slices.Clone(d.bytes())
	if n := d.count(1); n > 0 {
		s.versions = make([]uint64, n)
		for i := range s.versions {
			s.versions[i] = s.ID - d.uvarint(s.ID)
		}
	}
	if d.bad || len(d.b) > 0 {
		return nil, errRecord
	}
	return s, nil
}

// instant reads the part of a record about the instant of a delta file's rows.
func (d *decoder) instant(x *Delta) {
	x.Snapshot = d.uvarint(1<<64 - 1)
	x.DirtyBytes, x.DirtyRows = d.varint(), d.varint()
	x.Seq = d.uvarint(1<<64 - 1)
	for range d.count(2) {
		x.Growing = append(x.Growing, FileEnd{File: uint32(d.uvarint(1<<32 - 1)), Bytes: d.varint()})
	}
}

// decoder reads numbers from the front of b. If a number cannot be read, bad is set and all further
// reads return zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.b, d.bad = nil, true }

func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of elements that have at least size bytes each.
func (d *decoder) count(size int) int { return int(d.uvarint(uint64(len(d.b) / size))) }

func (d *decoder) bytes() []byte {
	n := d.uvarint(uint64(len(d.b)))
	if n > uint64(len(d.b)) { // the length itself took some of them
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}
