package kernels

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"aibox/gpu"
)

//go:embed aibox.ptx
var code []byte

// Image is all kernels, for gpu.Device.Load.
func Image() gpu.Image { return gpu.Image{Name: "aibox", Code: code, Params: params} }

// names are those of the kernels, and params their parameters. Each file adds its own with declare.
var (
	names  []string
	params = map[string][]gpu.ArgKind{}
)

// number is the place of a kernel in names.
type number int

// declare adds a kernel. Each letter is one of its parameters: r, w and u are regions that it
// reads, writes or updates, i, l and f are an int, a long long and a float. Spaces mean nothing. A
// matrix is two parameters, such as "ri": its rows and their stride.
func declare(name, letters string) number {
	kinds := []gpu.ArgKind{}
	for _, c := range strings.ReplaceAll(letters, " ", "") {
		k, ok := kindOf[c]
		if !ok {
			panic("kernels: a parameter " + string(c))
		}
		kinds = append(kinds, k)
	}
	names, params[name] = append(names, name), kinds
	return number(len(names) - 1)
}

var kindOf = map[rune]gpu.ArgKind{
	'r': gpu.ReadArg, 'w': gpu.WriteArg, 'u': gpu.UpdateArg, 'i': gpu.Int32Arg, 'l': gpu.Int64Arg, 'f': gpu.Float32Arg,
}

// Names returns the names of all kernels.
func Names() []string { return append([]string(nil), names...) }

// Set is the kernels on a device. Its methods enqueue launches, and are called by one goroutine at
// a time, as all of package gpu.
type Set struct {
	kernels []gpu.Kernel // by number
	args    []gpu.Arg    // of the launch that is being prepared
}

// Load makes the kernels available on a device.
func Load(dev gpu.Device) (*Set, error) {
	m, err := dev.Load(Image())
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	k := &Set{}
	for _, name := range names {
		f, err := m.Kernel(name)
		if err != nil {
			return nil, fmt.Errorf("kernels: %w", err)
		}
		k.kernels = append(k.kernels, f)
	}
	return k, nil
}

// with begins the arguments of a launch.
func (k *Set) with() *Set {
	k.args = k.args[:0]
	return k
}

// writes adds rows of a matrix that the kernel writes, and their stride, to the arguments.
func (k *Set) writes(m Matrix, rows int) *Set {
	k.args = append(k.args, gpu.Write(m.Region(rows)))
	return k.ints(m.Stride)
}

// reads adds rows of a matrix that the kernel reads, and their stride.
func (k *Set) reads(m Matrix, rows int) *Set {
	k.args = append(k.args, gpu.Read(m.Region(rows)))
	return k.ints(m.Stride)
}

// perhaps adds an optional operand, and its stride, at least 1. If the operand is absent, the
// stride is 0, and the kernel gets zero bytes of m, which it does not access.
func (k *Set) perhaps(x Matrix, rows int, m Matrix) *Set {
	if x.given() {
		x.Stride = max(x.Stride, 1)
		return k.reads(x, rows)
	}
	k.args = append(k.args, gpu.Read(gpu.Part(m.Memory, m.Offset, 0)))
	return k.ints(0)
}

// updates adds rows of a matrix that the kernel changes, and their stride.
func (k *Set) updates(m Matrix, rows int) *Set {
	k.args = append(k.args, gpu.Update(m.Region(rows)))
	return k.ints(m.Stride)
}

// add adds arguments of any kind.
func (k *Set) add(args ...gpu.Arg) *Set {
	k.args = append(k.args, args...)
	return k
}

// ints adds numbers. Numbers beyond int32 become a value that no kernel uses, and launch refuses
// it.
func (k *Set) ints(values ...int) *Set {
	for _, v := range values {
		if v < 0 || v > math.MaxInt32 {
			v = -1
		}
		k.args = append(k.args, gpu.Int32(int32(v)))
	}
	return k
}

// launch enqueues a kernel that numbers its threads.
func (k *Set) launch(s gpu.Stream, n number, g gpu.Geometry) error {
	if int64(g.Grid.Count())*int64(g.Block.Count()) > math.MaxInt32 {
		return gpu.Invalid("kernel %q: a grid of %+v blocks of %+v threads: a kernel numbers at most 2^31-1", names[n], g.Grid, g.Block)
	}
	return k.enqueue(s, n, g)
}

// enqueue enqueues a kernel with the arguments.
func (k *Set) enqueue(s gpu.Stream, n number, g gpu.Geometry) error {
	for i, a := range k.args {
		if a.Kind == gpu.Int32Arg && int32(a.Bits) < 0 {
			return gpu.Invalid("kernel %q: argument %d is negative, or more than an int32 holds", names[n], i)
		}
	}
	return s.Launch(k.kernels[n], g, k.args...)
}

// blockThreads is the number of threads of a block, of all kernels.
const blockThreads = 256

// MostElements is the maximum number of elements of an array that a kernel can index: whole blocks
// of threads, in an int32.
const MostElements = math.MaxInt32 / blockThreads * blockThreads

// elements is the geometry of kernels with a thread for each element.
func elements(rows, columns int) gpu.Geometry { return gpu.Linear(rows*columns, blockThreads) }

// lanes is how many threads sum up a row, in the order of kernel.Sum.
const lanes = 16

// rowGroups is the geometry of kernels with lanes threads for each row.
func rowGroups(rows int) gpu.Geometry { return gpu.Linear(rows*lanes, blockThreads) }
