package modeldir

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
	"os"

	"aibox/internal/errkind"
)

// Tensor is a named array of the dense network, its buffers or its optimizer.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// CorruptionError says that a file of the model directory is damaged.
type CorruptionError struct {
	File   string
	Offset int64 // negative: the error is about the whole file
	Reason string
}

// noOffset is the Offset of a CorruptionError about a whole file or directory.
const noOffset = -1

// Incomplete is the error for what an interrupted run has left if its parts do not fit.
func (w *Writer) Incomplete(err error) error {
	return &CorruptionError{File: w.TableDir(), Offset: noOffset, Reason: err.Error()}
}

func (e *CorruptionError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("model directory is damaged: %s%s: %s; bring it back with `aibox restore`, go back to another model with `aibox rollback`, or train again", e.File, at, e.Reason)
}

// ErrorKind sorts the error for exit codes and reports.
func (*CorruptionError) ErrorKind() errkind.Kind { return errkind.IO }

const (
	denseMagic     = "AIBOXDN1"
	maxDenseHeader = 64 << 20 // a header of a few thousand tensors is far below 1 MiB
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type denseHeader struct {
	Tensors []tensorHeader `json:"tensors"`
}

type tensorHeader struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// elements is the product of the dimensions, or -1 if it is impossibly large.
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

// WriteDense writes tensors to w in the dense file format.
func WriteDense(w io.Writer, tensors []Tensor) error {
	var h denseHeader
	for _, t := range tensors {
		th := tensorHeader{Name: t.Name, Shape: t.Shape}
		if th.elements() != len(t.Data) {
			panic(fmt.Sprintf("modeldir: tensor %s has shape %v but %d values", t.Name, t.Shape, len(t.Data)))
		}
		h.Tensors = append(h.Tensors, th)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<18)
	buf.WriteString(denseMagic)
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

// ReadDense reads what WriteDense wrote. name is used in errors, which are
// *CorruptionError unless reading itself failed.
func ReadDense(r io.Reader, name string) ([]Tensor, error) {
	d := denseReader{r: bufio.NewReaderSize(r, 1<<18), sum: crc32.New(castagnoli), name: name}
	fixed, err := d.take(len(denseMagic) + 4)
	if err != nil {
		return nil, err
	}
	if string(fixed[:len(denseMagic)]) != denseMagic {
		return nil, &CorruptionError{name, 0, fmt.Sprintf("starts with %q, not with %q", fixed[:len(denseMagic)], denseMagic)}
	}
	n := binary.LittleEndian.Uint32(fixed[len(denseMagic):])
	if n > maxDenseHeader {
		return nil, &CorruptionError{name, int64(len(denseMagic)), fmt.Sprintf("header of %d bytes", n)}
	}
	at := d.off
	head, err := d.take(int(n))
	if err != nil {
		return nil, err
	}
	var h denseHeader
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, &CorruptionError{name, at, "header: " + err.Error()}
	}
	tensors := make([]Tensor, 0, len(h.Tensors))
	for _, th := range h.Tensors {
		t := Tensor{Name: th.Name, Shape: th.Shape}
		left := th.elements()
		if left < 0 {
			return nil, &CorruptionError{name, at, fmt.Sprintf("tensor %s has shape %v", th.Name, th.Shape)}
		}
		// Read in pieces, so that a damaged shape cannot ask for more memory
		// than the file has bytes.
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
		return nil, &CorruptionError{name, at, fmt.Sprintf("checksum %08x, computed %08x", got, want)}
	}
	if _, err := d.r.ReadByte(); err != io.EOF {
		return nil, &CorruptionError{name, d.off, "there are bytes after the checksum"}
	}
	return tensors, nil
}

// denseReader counts the bytes that it hands out and computes their checksum.
type denseReader struct {
	r    *bufio.Reader
	sum  hash.Hash32
	name string
	off  int64
	buf  []byte
}

// take returns the next n bytes, valid until the next call.
func (d *denseReader) take(n int) ([]byte, error) {
	if cap(d.buf) < n {
		d.buf = make([]byte, n)
	}
	b := d.buf[:n]
	got, err := io.ReadFull(d.r, b)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &CorruptionError{d.name, d.off + int64(got), "the file ends early"}
		}
		return nil, fmt.Errorf("reading %s: %w", d.name, err)
	}
	d.off += int64(n)
	d.sum.Write(b)
	return b, nil
}

func readDenseFile(path string) ([]Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadDense(f, path)
}
