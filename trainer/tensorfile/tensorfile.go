package tensorfile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// FormatError says that a file is damaged.
type FormatError struct {
	Offset int64
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("at offset %d: %s", e.Offset, e.Reason) }

const (
	magic     = "AIBOXDN1"
	maxHeader = 64 << 20 // a header of a few thousand tensors is far below 1 MiB
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	Tensors []tensorHeader `json:"tensors"`
}

type tensorHeader struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// elements returns the product of the dimensions, or -1 if it is impossibly large.
func (h tensorHeader) elements() int {
	n := 1
	for _, d := range h.Shape {
		if d < 0 || (d > 0 && n > math.MaxInt32*4/d) {
			return -1
		}
		n *= d
	}
	return n
}

// Write writes tensors to w.
func Write(w io.Writer, tensors []Tensor) error {
	var h header
	for _, t := range tensors {
		th := tensorHeader{Name: t.Name, Shape: t.Shape}
		if th.elements() != len(t.Data) {
			panic(fmt.Sprintf("tensorfile: tensor %s has shape %v but %d values", t.Name, t.Shape, len(t.Data)))
		}
		h.Tensors = append(h.Tensors, th)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<18)
	buf.WriteString(magic)
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(len(head)))
	buf.Write(word[:])
	buf.Write(head)
	for _, t := range tensors {
		for _, v := range t.Data {
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
			buf.Write(word[:])
		}
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(word[:], sum.Sum32())
	_, err = w.Write(word[:])
	return err
}

// Read reads what Write wrote. Errors are *FormatError, unless r fails.
func Read(r io.Reader) ([]Tensor, error) {
	d := reader{r: bufio.NewReaderSize(r, 1<<18), sum: crc32.New(castagnoli)}
	fixed, err := d.take(len(magic) + 4)
	if err != nil {
		return nil, err
	}
	if string(fixed[:len(magic)]) != magic {
		return nil, &FormatError{0, fmt.Sprintf("starts with %q, not with %q", fixed[:len(magic)], magic)}
	}
	n := binary.LittleEndian.Uint32(fixed[len(magic):])
	if n > maxHeader {
		return nil, &FormatError{int64(len(magic)), fmt.Sprintf("header of %d bytes", n)}
	}
	at := d.off
	head, err := d.take(int(n))
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, &FormatError{at, "header: " + err.Error()}
	}
	tensors := make([]Tensor, 0, len(h.Tensors))
	for _, th := range h.Tensors {
		t := Tensor{Name: th.Name, Shape: th.Shape}
		left := th.elements()
		if left < 0 {
			return nil, &FormatError{at, fmt.Sprintf("tensor %s has shape %v", th.Name, th.Shape)}
		}
		// Read in pieces, so that a damaged shape cannot demand more memory than the file has
		// bytes.
		for left > 0 {
			m := min(left, 1<<14)
			raw, err := d.take(4 * m)
			if err != nil {
				return nil, err
			}
			for i := range m {
				t.Data = append(t.Data, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
			}
			left -= m
		}
		tensors = append(tensors, t)
	}
	want := d.sum.Sum32()
	at = d.off
	tail, err := d.take(4)
	if err != nil {
		return nil, err
	}
	if got := binary.LittleEndian.Uint32(tail); got != want {
		return nil, &FormatError{at, fmt.Sprintf("checksum %08x, computed %08x", got, want)}
	}
	if _, err := d.r.ReadByte(); err != io.EOF {
		return nil, &FormatError{d.off, "there are bytes after the checksum"}
	}
	return tensors, nil
}

// reader counts the bytes that it returns and computes their checksum.
type reader struct {
	r   *bufio.Reader
	sum hash.Hash32
	off int64
	buf []byte
}

// take returns the next n bytes, valid until the next call.
func (d *reader) take(n int) ([]byte, error) {
	if cap(d.buf) < n {
		d.buf = make([]byte, n)
	}
	b := d.buf[:n]
	got, err := io.ReadFull(d.r, b)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &FormatError{d.off + int64(got), "the file ends early"}
		}
		return nil, err
	}
	d.off += int64(n)
	d.sum.Write(b)
	return b, nil
}
