package hadoop

import (
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/colinmarc/hdfs/v2"
	"github.com/klauspost/reedsolomon"
	"google.golang.org/protobuf/proto"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// coding says how the bytes of an erasure-coded file are spread over DataNodes. A block of the file
// is a group of data+parity internal blocks, whose ids are consecutive and begin with that of the
// group. Cells of the file go to the data blocks in turn; here with data=3, parity=2 and seven
// cells:
//
//	0  1  2 | P  P    the rows are stripes, the columns internal blocks;
//	3  4  5 | P  P    the last cell may be shorter, and the parities of a
//	6       | P  P    stripe are as long as its first cell
//
// A parity cell is computed from the bytes at the same offsets in the data cells of its stripe.
// Bytes that are missing in the last stripe count as zeros. Any data (here 3) cells of a stripe
// determine the others.
type coding struct {
	codec        string
	data, parity int
	cell         int64 // bytes
}

// codings are Hadoop's built-in policies by number. NameNodes send only the number of these.
var codings = map[uint32]*coding{
	1: {"rs", 6, 3, 1 << 20},
	2: {"rs", 3, 2, 1 << 20},
	3: {"rs-legacy", 6, 3, 1 << 20},
	4: {"xor", 2, 1, 1 << 20},
	5: {"rs", 10, 4, 1 << 20},
}

// codingOf returns the coding of a file, or nil if it is replicated.
func codingOf(info os.FileInfo) (*coding, error) {
	st, _ := info.Sys().(*hdfs.FileStatus)
	p := st.GetEcPolicy()
	if p == nil {
		return nil, nil
	}
	if c := codings[p.GetId()]; c != nil {
		return c, nil
	}
	s := p.GetSchema()
	c := &coding{s.GetCodecName(), int(s.GetDataUnits()), int(s.GetParityUnits()), int64(p.GetCellSize())}
	if _, err := c.decoder(); err != nil || c.cell < 1 {
		return nil, fmt.Errorf("its erasure coding policy is not supported: number %d, name %q, codec %q of %d and %d blocks, cells of %d bytes",
			p.GetId(), p.GetName(), c.codec, c.data, c.parity, c.cell)
	}
	return c, nil
}

// createFlags returns the flags to create the file p replicated, even in an erasure-coded
// directory. SHOULD_REPLICATE is set only there, so NameNodes too old to know it do not receive it.
func (s *session) createFlags(p string) (uint32, error) {
	const create, shouldReplicate = 0x01, 0x80
	dir, err := s.client.Stat(path.Dir(p))
	if err != nil {
		return 0, err
	}
	if st, ok := dir.Sys().(*hdfs.FileStatus); ok && st.GetEcPolicy() != nil {
		return create | shouldReplicate, nil
	}
	return create, nil
}

// place returns where the byte at offset of the file is: the data block of group b, and the offset
// in that block. left is the number of bytes from there to the end of the cell, or of the group.
func (c *coding) place(b *block, offset int64) (unit int, at, left int64) {
	offset -= b.start
	cell, in := offset/c.cell, offset%c.cell
	data := int64(c.data)
	return int(cell % data), cell/data*c.cell + in, min(c.cell-in, b.length-offset)
}

// length returns the length of an internal block of a group that has the given number of bytes of
// the file.
func (c *coding) length(group int64, unit int) int64 {
	stripe := c.cell * int64(c.data)
	rest := group % stripe
	if unit < c.data {
		rest -= int64(unit) * c.cell
	}
	return group/stripe*c.cell + min(max(rest, 0), c.cell)
}

// units returns the internal blocks of a group. Their replicas do not include DataNodes that are
// down.
func (c *Cluster) units(b *block, code *coding) []*block {
	at := b.located.Bytes("blockIndices") // the internal block's index, for each location
	tokens := b.located.List("blockTokens")
	units := make([]*block, code.data+code.parity)
	for u := range units {
		id := wire.Message{Message: proto.Clone(b.identity.Message().Interface()).ProtoReflect()}
		id.Set("blockId", uint64(id.Int("blockId")+int64(u))).Set("numBytes", uint64(code.length(b.length, u)))
		token := b.located.In("blockToken")
		if i := slices.Index(at, byte(u)); i >= 0 && i < len(tokens) {
			token = tokens[i]
		}
		units[u] = c.newBlock(b.partly(id, token, func(i int) bool { return i < len(at) && int(at[i]) == u }), b.key)
		units[u].start = 0
	}
	return units
}

// partly returns a LocatedBlockProto with the locations of b that keep selects.
func (b *block) partly(id, token wire.Message, keep func(i int) bool) wire.Message {
	part := wire.New("LocatedBlockProto")
	part.Set("b", id).Set("offset", uint64(b.start)).Set("corrupt", false).Set("blockToken", token)
	for _, name := range []string{"locs", "storageTypes", "storageIDs"} {
		all := b.located.Value(name).List()
		for i := range all.Len() {
			if keep(i) {
				part.Elements(name).Append(all.Get(i))
			}
		}
	}
	return part
}

// decoder computes missing cells as Hadoop's codecs do.
func (c *coding) decoder() (reedsolomon.Encoder, error) {
	if c.data < 1 || c.parity < 1 || c.data+c.parity > 256 {
		return nil, fmt.Errorf("no code has %d and %d blocks", c.data, c.parity)
	}
	var matrix reedsolomon.Option
	switch c.codec {
	case "rs": // the element for parity p and data block d is 1/((data+p) xor d)
		matrix = reedsolomon.WithCauchyMatrix()
	case "rs-legacy":
		matrix = reedsolomon.WithCustomMatrix(legacyMatrix(c.data, c.parity))
	case "xor":
		matrix = reedsolomon.WithCustomMatrix([][]byte{slices.Repeat([]byte{1}, c.data)})
	default:
		return nil, fmt.Errorf("there is no decoder for the codec %q", c.codec)
	}
	return reedsolomon.New(c.data, c.parity, matrix, reedsolomon.WithMaxGoroutines(1)) // readers already run in parallel
}

// legacyMatrix returns the matrix of Hadoop's first codec, a cyclic code: the cells of a stripe,
// parity first, are the coefficients of a polynomial that is divisible by (x+1)(x+2)(x+4)..., which
// has as many factors as there are parities.
func legacyMatrix(data, parity int) [][]byte {
	divisor := make([]byte, parity+1) // lowest coefficient first
	divisor[0] = 1
	for i, root := 0, byte(1); i < parity; i, root = i+1, times(root, 2) {
		for j := i + 1; j >= 0; j-- {
			divisor[j] = times(divisor[j], root)
			if j > 0 {
				divisor[j] ^= divisor[j-1]
			}
		}
	}
	matrix := make([][]byte, parity)
	rest := divisor[:parity] // the remainder of x^parity, then of the next powers
	for range data {
		for p := range matrix {
			matrix[p] = append(matrix[p], rest[p])
		}
		next := make([]byte, parity)
		for p := range next {
			next[p] = times(rest[parity-1], divisor[p])
			if p > 0 {
				next[p] ^= rest[p-1]
			}
		}
		rest = next
	}
	return matrix
}

// times multiplies in the field of 256 elements that the polynomial 0x11d defines.
func times(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 > 0 {
			product ^= a
		}
		high := a >> 7
		a = a<<1 ^ high*0x1d
	}
	return product
}
