package deltafile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
)

const (
	magic = "ADL2"
	// HeaderBytes is the size of a block's header. EntryBytes is the size of an entry without its
	// row.
	HeaderBytes = 40
	EntryBytes  = 16
	blockTarget = 64 << 10
	blockUnit   = 4096
	// Suffix ends the names of all delta files.
	Suffix = ".delta"
)

// Kind is the kind of the rows in a block.
type Kind uint32

// The kinds of blocks.
const (
	Dirty Kind = 0
	Clean Kind = 1
)

func (k Kind) String() string {
	if k == Dirty {
		return "dirty"
	}
	return "clean"
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BlockBytes is the size of a block with rows of that many bytes.
func BlockBytes(rowBytes int) int {
	return int(roundUp(max(blockTarget, HeaderBytes+EntryBytes+int64(rowBytes)), blockUnit))
}

// Prefix begins the names of all delta files of a table.
func Prefix(table uint64) string { return fmt.Sprintf("%016x-", table) }

// Name is the name of the file that a snapshot writes into the table's directory number dir.
func Name(table, file uint64, dir int) string {
	if dir == 0 {
		return fmt.Sprintf("%s%016x%s", Prefix(table), file, Suffix)
	}
	return fmt.Sprintf("%s%016x-%x%s", Prefix(table), file, dir, Suffix)
}

// split splits the name of a file into the part that all files of one instant share, and the number
// of the directory for which it was written.
func split(name string) (instant string, dir uint32) {
	instant = strings.TrimSuffix(name, Suffix)
	parts := strings.Split(instant, "-")
	if len(parts) != 3 {
		return instant, 0
	}
	n, err := strconv.ParseUint(parts[2], 16, 32)
	if err != nil {
		return instant, 0
	}
	return strings.Join(parts[:2], "-"), uint32(n)
}

// DirOf is the number of the directory for which a file was written.
func DirOf(name string) int {
	_, dir := split(name)
	return int(dir)
}

// fileOf is the number in the name of a file; 0: the name is not valid.
func fileOf(name string) uint64 {
	instant, _ := split(name)
	_, number, _ := strings.Cut(instant, "-")
	n, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// IsName reports whether a delta file of a table may have this name.
func IsName(table uint64, name string) bool {
	rest, has := strings.CutPrefix(name, Prefix(table))
	rest, ends := strings.CutSuffix(rest, Suffix)
	return has && ends && rest != "" && strings.Trim(rest, "0123456789abcdef-") == ""
}

// SameInstant reports whether two files have rows of the same instant, which a snapshot wrote into
// several directories.
func SameInstant(a, b string) bool {
	i, _ := split(a)
	j, _ := split(b)
	return i == j
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// Header identifies a block and says how many rows it has.
type Header struct {
	Table, File uint64
	Block       uint32
	Rows        uint32
	Kind        Kind
	Dir         uint32
}

// AppendEntry appends a row's entry; stored says that the row's bucket has a version of it.
func AppendEntry(b []byte, key uint64, uses uint32, stored bool, row []float32) []byte {
	info := min(uses, 1<<30) << 1
	if stored {
		info |= 1
	}
	b = binary.LittleEndian.AppendUint64(b, key)
	b = binary.LittleEndian.AppendUint32(b, info)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, v := range row {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Seal writes the header of a block that already has its entries.
func Seal(b []byte, h Header) {
	copy(b, magic)
	le := binary.LittleEndian
	le.PutUint64(b[8:], h.Table)
	le.PutUint64(b[16:], h.File)
	le.PutUint32(b[24:], h.Block)
	le.PutUint32(b[28:], h.Rows)
	le.PutUint32(b[32:], uint32(h.Kind))
	le.PutUint32(b[36:], h.Dir)
	le.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
}

// decode checks a block and returns the number of its rows, or the reason why it is damaged. It
// ignores want.Rows.
func decode(b []byte, want Header, rowBytes int) (rows int, reason string) {
	le := binary.LittleEndian
	if len(b) < HeaderBytes || string(b[:4]) != magic {
		return 0, fmt.Sprintf("it does not begin with %q", magic)
	}
	if got, want := crc32.Checksum(b[8:], castagnoli), le.Uint32(b[4:]); got != want {
		return 0, fmt.Sprintf("checksum %08x, should be %08x", got, want)
	}
	if le.Uint64(b[8:]) != want.Table || le.Uint64(b[16:]) != want.File || le.Uint32(b[24:]) != want.Block || le.Uint32(b[32:]) != uint32(want.Kind) || le.Uint32(b[36:]) != want.Dir {
		return 0, "the block belongs to another table, file or place"
	}
	n := le.Uint32(b[28:])
	if uint64(n)*uint64(EntryBytes+rowBytes)+HeaderBytes > uint64(len(b)) {
		return 0, fmt.Sprintf("its %d rows do not fit into it", n)
	}
	return int(n), ""
}

// CorruptionError says where a file differs from what was written.
type CorruptionError struct {
	File   string // with its directory
	Offset int64
	Reason string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("deltafile: corrupt: %s at %d: %s", e.File, e.Offset, e.Reason)
}
