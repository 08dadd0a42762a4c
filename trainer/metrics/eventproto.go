package metrics

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"
)

// An event file is a sequence of TFRecords:
//
//	uint64  length of data      little endian
//	uint32  masked CRC32C of the 8 length bytes
//	data
//	uint32  masked CRC32C of data
//
// The data is a protobuf message Event (tensorflow/core/util/event.proto):
//
//	Event    1 wall_time double   2 step int64   3 file_version string   5 summary Summary
//	Summary  1 value Value, repeated
//	Value    1 tag string         2 simple_value float
//
// For so few fields, generated code is not worth it.

// The wire types of the protobuf encoding used here.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the CRC, rotated right by 15 bits, plus a constant, as TFRecord defines it
// (tensorflow/core/lib/hash/crc32c.h). The mask is for data that contain CRCs themselves.
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord appends one TFRecord. data appends its contents.
func appendRecord(b []byte, data func([]byte) []byte) []byte {
	head := len(b)
	b = data(append(b, make([]byte, 12)...))
	body := b[head+12:]
	binary.LittleEndian.PutUint64(b[head:], uint64(len(body)))
	binary.LittleEndian.PutUint32(b[head+8:], maskedCRC(b[head:head+8]))
	return binary.LittleEndian.AppendUint32(b, maskedCRC(body))
}

func appendTag(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field<<3|wire))
}

func appendBytes[T string | []byte](b []byte, field int, data T) []byte {
	b = appendTag(b, field, wireBytes)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

func appendWallTime(b []byte, at time.Time) []byte {
	b = appendTag(b, 1, wireFixed64)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(at.UnixNano())/1e9))
}

// appendVersionEvent appends the first event of every file.
func appendVersionEvent(b []byte, at time.Time) []byte {
	return appendBytes(appendWallTime(b, at), 3, "brain.Event:2")
}

func appendScalarEvent(b []byte, step int64, at time.Time, scalars []Scalar) []byte {
	var summary, value []byte
	for _, s := range scalars {
		value = appendBytes(value[:0], 1, s.Tag)
		value = appendTag(value, 2, wireFixed32)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(s.Value)))
		summary = appendBytes(summary, 1, value)
	}
	b = appendWallTime(b, at)
	b = appendTag(b, 2, wireVarint)
	b = binary.AppendUvarint(b, uint64(step))
	return appendBytes(b, 5, summary)
}
