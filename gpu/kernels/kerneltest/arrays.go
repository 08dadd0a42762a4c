package kerneltest

import (
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// array is a matrix in a memory of its own, with garbage around it and in its gaps.
type array struct {
	kernels.Matrix
	rows  int
	bytes int    // of a number: 4 for float32, which it has until something else is said, 2 for bfloat16, 8 for float64
	was   []byte // all of the memory, when it was made
}

func (a *array) String() string {
	return fmt.Sprintf("%d rows of %d, %d apart, from byte %d", a.rows, a.Columns, a.Stride, a.Offset)
}

// value returns element (i, j) as it was when the array was made.
func (a *array) value(i, j int) float32 { return a.row(i)[j] }

// row returns row i as it was when the array was made.
func (a *array) row(i int) []float32 { return rowOf(a, a.was, i) }

func rowOf(a *array, data []byte, i int) []float32 {
	return gpu.As[float32](data)[a.Offset/4+i*a.Stride:][:a.Columns]
}

// region is all elements of the array.
func (a *array) region() gpu.Region { return a.Region(a.rows) }

// matrix makes an array on the device.
func (r *rig) matrix(rows, columns int, value func() float32) *array {
	r.Helper()
	return r.aligned(4, rows, columns, value)
}

// aligned makes an array that begins at a multiple of align bytes, and in half of the trials of 16,
// so that kernels can read several numbers at once.
func (r *rig) aligned(align, rows, columns int, value func() float32) *array {
	r.Helper()
	a := &array{rows: rows, bytes: 4}
	a.Columns, a.Stride = columns, columns+r.IntN(4)*r.IntN(3)
	a.Offset = []int{16, align}[r.IntN(2)] * r.IntN(6)
	a.was = make([]byte, a.Offset+4*max(1, rows)*a.Stride+4*r.IntN(9))
	words := gpu.As[float32](a.was)
	for i := range words {
		words[i] = r.garbage()
	}
	for i := range rows {
		row := a.row(i)
		for j := range row {
			row[j] = value()
		}
	}
	r.upload(a)
	return a
}

// vector makes an array of one row. Two of its numbers may be one of 64 bits.
func (r *rig) vector(columns int, value func() float32) *array {
	r.Helper()
	return r.aligned(8, 1, columns, value)
}

// words makes an array of one row of numbers that are not float32, such as a flag.
func (r *rig) words(values ...uint32) *array {
	r.Helper()
	return r.vector(len(values), func() float32 {
		v := values[0]
		values = values[1:]
		return math.Float32frombits(v)
	})
}

func (r *rig) upload(a *array) {
	r.Helper()
	var err error
	a.Memory, err = r.dev.Alloc(fmt.Sprintf("array %d", len(r.arrays)), len(a.was))
	r.must(err)
	p, err := r.dev.AllocPinned("upload", len(a.was))
	r.must(err)
	to, err := p.Writing(0, len(a.was))
	r.must(err)
	copy(to, a.was)
	r.must(r.s.Copy(gpu.All(a.Memory), gpu.All(p)))
	r.must(r.s.Synchronize())
	r.must(p.Free())
	r.arrays = append(r.arrays, a)
}

// download returns what the array's memory holds now.
func (r *rig) download(a *array) []byte {
	r.Helper()
	p, err := r.dev.AllocPinned("download", len(a.was))
	r.must(err)
	r.must(r.s.Copy(gpu.All(p), gpu.All(a.Memory)))
	r.must(r.s.Synchronize())
	from, err := p.Reading(0, len(a.was))
	r.must(err)
	data := append([]byte(nil), from...)
	r.must(p.Free())
	return data
}

// equal fails the test unless the elements of a have become what want says, bit for bit, where
// all NaN are equal, and nothing else in its memory has changed.
func (r *rig) equal(what string, a *array, want func(i, j int) float32) {
	r.Helper()
	r.check(what, a, func(got float32, i, j int) (string, bool) {
		w := want(i, j)
		return fmt.Sprintf("%v (%#x)", w, math.Float32bits(w)), math.Float32bits(got) == math.Float32bits(w) || got != got && w != w
	})
}

// near fails the test unless the elements of a have become about what want says. A difference of
// a millionth of scale is allowed.
func (r *rig) near(what string, a *array, want func(i, j int) (value, scale float64)) {
	r.Helper()
	r.check(what, a, func(got float32, i, j int) (string, bool) {
		w, scale := want(i, j)
		return fmt.Sprint(w), math.Abs(float64(got)-w) <= 1e-6*scale
	})
}

func (r *rig) check(what string, a *array, good func(got float32, i, j int) (want string, ok bool)) {
	r.Helper()
	data := r.download(a)
	for i := range a.rows {
		for j, got := range rowOf(a, data, i) {
			if want, ok := good(got, i, j); !ok {
				r.Fatalf("%s: %s, %v: element (%d, %d) is %v (%#x), want %s", r.where, what, a, i, j, got, math.Float32bits(got), want)
			}
		}
		copy(rowOf(a, data, i), a.row(i))
	}
	for at, b := range data {
		if b != a.was[at] {
			r.Fatalf("%s: %s, %v: byte %d has changed", r.where, what, a, at)
		}
	}
}

// rowCount draws a number of examples: none, few, and such that sums have several chunks.
func (r *rig) rowCount() int {
	switch n := r.IntN(10); {
	case n == 0 && !r.first:
		return 0
	case n == 1:
		return 255 + r.IntN(300)
	}
	return 1 + r.IntN(40)
}

// columnCount draws a number of columns.
func (r *rig) columnCount() int {
	if r.IntN(4) == 0 {
		return 1
	}
	return 1 + r.IntN(70)
}

// garbage is a value for memory that must not be used: memory that results overwrite, and memory
// between and around rows. In half of the trials it is NaN, which propagates to everything computed
// from it, even times zero. In the others it is an ordinary number, which reveals missing results.
func (r *rig) garbage() float32 {
	if r.poisoned {
		return math.Float32frombits(0x7fdeadbe)
	}
	return r.plain()
}

// plain draws a number between -2 and 2.
func (r *rig) plain() float32 { return 4*r.Float32() - 2 }

// wild draws any number: zeros, denormal and large ones, infinities and NaN too.
func (r *rig) wild() float32 {
	switch r.IntN(16) {
	case 0:
		return 0
	case 1:
		return float32(math.Copysign(0, -1))
	case 2:
		return float32(math.Inf(1 - 2*r.IntN(2)))
	case 3:
		return float32(math.NaN())
	case 4:
		return math.Float32frombits(r.Uint32()&0x807fffff | 1) // denormal
	case 5, 6:
		return 200 * r.plain()
	case 7:
		// Any bits, but no signalling NaN, with which emulated devices mark what was not written.
		if x := math.Float32frombits(r.Uint32()); x == x {
			return x
		}
	}
	return r.plain()
}

// tame draws numbers as wild does, but none that is infinite or NaN.
func (r *rig) tame() float32 {
	x := r.wild()
	if x-x != 0 {
		return 3e38
	}
	return x
}

// any draws from one of the distributions, the same for all elements.
func (r *rig) any() func() float32 {
	if r.IntN(2) == 0 {
		return r.plain
	}
	return r.wild
}

// work is memory for sums over the rows of a.
func (r *rig) work(a *array) gpu.Region {
	r.Helper()
	n := max(8, kernels.WorkBytes(a.rows, a.Columns))
	m := r.vector(n/4, r.garbage)
	m.bytes = 8
	return gpu.Part(m.Memory, m.Offset, n)
}

// pairs is the number of pairs of f vectors.
func pairs(f int) int { return kernel.Pairs(f) }
