package tablediff

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// A record holds a row, or a key of a field, until its partition is compared:
//
//	0   key     uint64, little-endian as all numbers
//	8   word    uint32: the row's show as a float32, or the number of the field
//	12  values  float32 each; none for keys of fields, or if values are not compared
func recordBytes(dim int) int { return 12 + 4*dim }

// maxChunk is large enough for a disk to write and read chunks at its full speed.
const maxChunk = 1 << 20

// spill keeps the records of several partitions in one file. Each partition collects its own
// in memory until they fill a chunk, which is then written to the end of the file.
type spill struct {
	file  *os.File
	first uint64 // the number of the first partition
	parts []spilled
	dim   int
	chunk int // bytes; a multiple of recordBytes(dim)
	size  int64
}

type spilled struct {
	chunks []int64 // their offsets
	rest   []byte  // records that do not fill a chunk yet
}

// newSpill makes a spill of n partitions, which takes about memoryBytes of memory.
func newSpill(first, n uint64, dim int, memoryBytes int64) (*spill, error) {
	record := recordBytes(dim)
	chunk := int(min(memoryBytes/int64(n+1), maxChunk)) / record * record
	s := &spill{first: first, parts: make([]spilled, n), dim: dim, chunk: max(chunk, record)}
	var err error
	if s.file, err = os.CreateTemp("", "aibox-diff-*"); err != nil {
		return nil, err
	}
	// A file without a name is gone when the process ends, however it ends.
	if err := os.Remove(s.file.Name()); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// add adds a record to a partition.
func (s *spill) add(partition, key uint64, word uint32, values []float32) error {
	p := &s.parts[partition-s.first]
	if p.rest == nil {
		p.rest = make([]byte, 0, s.chunk)
	}
	b := binary.LittleEndian.AppendUint64(p.rest, key)
	b = binary.LittleEndian.AppendUint32(b, word)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	if p.rest = b; len(b) < s.chunk {
		return nil
	}
	if err := diskfault.At("write", s.file.Name()); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(b, s.size); err != nil {
		return err
	}
	p.chunks = append(p.chunks, s.size)
	p.rest, s.size = b[:0], s.size+int64(len(b))
	return nil
}

// visit calls f for the records of a partition, in the order in which they were added, and
// forgets them. values are only valid until f returns.
func (s *spill) visit(partition uint64, f func(key uint64, word uint32, values []float32)) error {
	p := &s.parts[partition-s.first]
	b, values := make([]byte, s.chunk), make([]float32, s.dim)
	each := func(b []byte) {
		for ; len(b) > 0; b = b[recordBytes(s.dim):] {
			for i := range values {
				values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[12+4*i:]))
			}
			f(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), values)
		}
	}
	for _, at := range p.chunks {
		if _, err := s.file.ReadAt(b, at); err != nil {
			return fmt.Errorf("reading rows back from a temporary file: %w", err)
		}
		each(b)
	}
	each(p.rest)
	*p = spilled{}
	return nil
}

func (s *spill) close() { _ = s.file.Close() } // nothing in it is needed any more

// later holds what belongs to the partitions after the current one, so that the tables and the logs
// are not read again for them.
type later struct {
	end            uint64 // the partitions are those before end
	from, to, keys *spill
}

// newLater makes room for as many of the partitions after number as fit on the disk of temporary
// files. Half of the free space is left to other programs and to the keys of fields, whose number
// is unknown. There is no room, and no error, if number is the last partition. With an error, the
// returned later has no room either.
func newLater(p *partition, number uint64, rows int64, memoryBytes int64) (*later, error) {
	l := &later{end: number + 1}
	if l.end == p.of {
		return l, nil
	}
	free, err := disk.Free(os.TempDir())
	if err != nil {
		return l, err
	}
	each := float64(rows) / float64(p.of) * estimateSlop * float64(recordBytes(p.dim))
	n := min(p.of-l.end, uint64(float64(free)/2/max(1, each)))
	if n == 0 {
		return l, fmt.Errorf("%s has no space for the rows of a partition", os.TempDir())
	}
	for _, s := range []struct {
		at  **spill
		dim int
	}{{&l.from, p.dim}, {&l.to, p.dim}, {&l.keys, 0}} {
		if *s.at, err = newSpill(l.end, n, s.dim, memoryBytes/3); err != nil {
			l.drop(number)
			return l, err
		}
	}
	l.end += n
	return l, nil
}

// drop forgets all partitions but the current one.
func (l *later) drop(number uint64) {
	l.close()
	*l = later{end: number + 1}
}

// close frees the space of the files.
func (l *later) close() {
	for _, s := range []*spill{l.from, l.to, l.keys} {
		if s != nil {
			s.close()
		}
	}
}
