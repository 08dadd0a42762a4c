package gpu

import (
	"fmt"
	"math"
)

// Image is compiled kernels. Code is what the driver of a device takes, such as PTX. The emulation
// has a Go function for each kernel and finds it by the names of image and kernel. Params are the kinds of
// arguments that kernels have. Code tells no more of them than their sizes; where a kernel is not in
// Params, CUDA devices check those alone.
type Image struct {
	Name   string
	Code   []byte
	Params map[string][]ArgKind
}

// Module is an image on a device.
type Module interface {
	Kernel(name string) (Kernel, error)
}

// Kernel is a function that a device runs.
type Kernel interface{ Name() string }

// Dim is a number of blocks or of threads, or the place of one, in up to three dimensions.
type Dim struct{ X, Y, Z int }

// Count is the product of the dimensions, each at least 1.
func (d Dim) Count() int { return max(d.X, 1) * max(d.Y, 1) * max(d.Z, 1) }

// Geometry is the shape of a launch: a grid of blocks of threads. Dimensions of 0 count as 1.
// Blocks must not depend on one another: they run in any order.
type Geometry struct {
	Grid, Block Dim
	SharedBytes int // for each block, beside what the kernel declares
}

// Linear is the geometry of at least n threads in one dimension.
func Linear(n, threads int) Geometry {
	return Geometry{Grid: Dim{X: max(1, (n+threads-1)/threads)}, Block: Dim{X: threads}}
}

// ArgKind is the type of an argument.
type ArgKind uint8

// The kinds of regions come first; the kernel gets them as the address of their first byte.
const (
	ReadArg   ArgKind = iota + 1 // a region that the kernel reads
	WriteArg                     // one of which it writes every byte, and reads none before
	UpdateArg                    // one that it reads, and any part of which it may write
	Int32Arg
	Int64Arg
	Float32Arg
)

func (k ArgKind) String() string {
	return [...]string{"none", "a region to read", "a region to write", "a region to update", "int32", "int64", "float32"}[k]
}

// Arg is an argument of a kernel. A region that a kernel writes overlaps none of its other regions,
// and all are in memory of the device that runs the kernel. Read, Write and Update declare the
// kernel's accesses: they determine the order of operations in a graph, and the emulation checks
// them, including the gaps between rows.
type Arg struct {
	Kind   ArgKind
	Region Region
	Bits   uint64 // of a number
}

// Read is an argument that the kernel reads.
func Read(r Region) Arg { return Arg{Kind: ReadArg, Region: r} }

// Write is an argument that the kernel writes entirely.
func Write(r Region) Arg { return Arg{Kind: WriteArg, Region: r} }

// Update is an argument that the kernel reads, and any part of which it may write.
func Update(r Region) Arg { return Arg{Kind: UpdateArg, Region: r} }

// Int32 is an int argument.
func Int32(v int32) Arg { return Arg{Kind: Int32Arg, Bits: uint64(uint32(v))} }

// Int64 is a long long argument.
func Int64(v int64) Arg { return Arg{Kind: Int64Arg, Bits: uint64(v)} }

// Float32 is a float argument.
func Float32(v float32) Arg { return Arg{Kind: Float32Arg, Bits: uint64(math.Float32bits(v))} }

// IsRegion reports whether the argument is a region.
func (a Arg) IsRegion() bool { return a.Kind >= ReadArg && a.Kind <= UpdateArg }

// Writes reports whether the kernel may write the argument.
func (a Arg) Writes() bool { return a.Kind == WriteArg || a.Kind == UpdateArg }

// Limits of every CUDA device that we know.
const (
	mostThreads = 1024
	mostDepth   = 64 // threads in dimension Z
	mostBlocksX = math.MaxInt32
	mostBlocks  = 65535 // in dimensions Y and Z
)

// CheckLaunch returns an InvalidArgument for a launch that no device, or not this one, can run.
func CheckLaunch(i Info, g Geometry, args []Arg) error {
	b, n := g.Block, g.Grid
	for _, d := range []int{b.X, b.Y, b.Z, n.X, n.Y, n.Z, g.SharedBytes} {
		if d < 0 {
			return Invalid("the geometry %+v has a negative number", g)
		}
	}
	switch {
	case max(b.X, b.Y) > mostThreads || b.Z > mostDepth || b.Count() > mostThreads:
		return Invalid("blocks of %+v threads: the limits are %d threads, and %d in dimension Z", b, mostThreads, mostDepth)
	case n.X > mostBlocksX || max(n.Y, n.Z) > mostBlocks:
		return Invalid("a grid of %+v blocks: the limits are %d, %d and %d", n, mostBlocksX, mostBlocks, mostBlocks)
	case g.SharedBytes > i.SharedBytes:
		return Invalid("%d bytes of shared memory for each block: the device has %d", g.SharedBytes, i.SharedBytes)
	}
	for k, a := range args {
		if a.Kind < ReadArg || a.Kind > Float32Arg {
			return Invalid("argument %d has no type", k)
		}
		if !a.IsRegion() {
			continue
		}
		if a.Region.Check("") != nil { // its name is made only if there is an error
			return a.Region.Check(fmt.Sprintf("argument %d", k))
		}
		for j, o := range args[:k] {
			if o.IsRegion() && (a.Writes() || o.Writes()) && a.Region.Overlaps(o.Region) {
				return Invalid("arguments %d and %d overlap, and one of them is written: %v, %v", j, k, o.Region, a.Region)
			}
		}
	}
	return nil
}
