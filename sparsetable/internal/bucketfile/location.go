package bucketfile

import "fmt"

// Widths of a Location's parts.
const (
	fileBits   = 24
	offsetBits = 28
	unitsBits  = 12

	maxFile   = 1<<fileBits - 1
	maxOffset = 1<<offsetBits - 1
	// MaxUnits bounds the units of one bucket.
	MaxUnits = 1<<unitsBits - 1
)

// MaxFileBytes is the maximum size of a file of a table whose unit has that many bytes.
func MaxFileBytes(unit int) int64 { return maxOffset * int64(unit) }

// A Location says where a bucket lies. 0 stands for no bucket.
type Location uint64

func makeLocation(file uint32, offset int64, units int) Location {
	if file == 0 || file > maxFile || offset < 0 || offset > maxOffset || units < 1 || units > MaxUnits {
		panic(fmt.Sprintf("bucketfile: location of file %d, offset %d, %d units", file, offset, units))
	}
	return Location(file)<<(offsetBits+unitsBits) | Location(offset)<<unitsBits | Location(units)
}

// File returns the number of the file, 1 or more.
func (l Location) File() uint32 { return uint32(l >> (offsetBits + unitsBits)) }

// Offset returns where in the file the bucket starts, in units.
func (l Location) Offset() int64 { return int64(l >> unitsBits & maxOffset) }

// Units returns the length of the bucket in units.
func (l Location) Units() int { return int(l & MaxUnits) }

// FileStart is before every location in a file, and after all locations in files with lower
// numbers.
func FileStart(file uint32) Location { return Location(uint64(file) << (offsetBits + unitsBits)) }

func (l Location) String() string {
	return fmt.Sprintf("%d@%d+%d", l.File(), l.Offset(), l.Units())
}
