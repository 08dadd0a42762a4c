package gputest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// board is what the programs of testGraphOrder work on: matrices of as many rows and columns of
// float32, the last two of them in pinned memory, and row numbers.
type board struct {
	*rig
	rng           *rand.Rand
	s             gpu.Stream
	rows, columns int
	matrices      []gpu.Memory
	index         gpu.Memory
	affine        gpu.Kernel
	gather        gpu.Kernel
}

const (
	onDevice = 3 // matrices
	indices  = 4
)

// testGraphOrder runs programs whose operations use parts of the same matrices, one operation after
// the other and as graphs, to the same bits. One program has branches that meet again, in columns
// of one matrix; others are random.
func testGraphOrder(r *rig) {
	rng := testseed.Rand(r)
	d := r.open(1)[0]
	s, other := r.stream(d, "s"), r.stream(d, "other")
	r.must(s.PrepareProducts())
	for i := range 9 {
		b := &board{rig: r, rng: rng, s: s, rows: 24, columns: []int{32, 272}[i%2], affine: r.kernel(d, kernelAffine), gather: r.kernel(d, kernelGather)}
		b.fill(d)
		program := b.branches
		if i > 0 {
			var steps []func() error
			for range 4 + rng.IntN(40) {
				steps = append(steps, b.random())
			}
			program = func() error {
				for _, step := range steps {
					if err := step(); err != nil {
						return err
					}
				}
				return nil
			}
		}
		b.compare(fmt.Sprintf("program %d", i), other, program)
	}
}

func (b *board) bytes() int { return 4 * b.rows * b.columns }

// fill makes the memories.
func (b *board) fill(d gpu.Device) {
	b.Helper()
	for i := range onDevice {
		b.matrices = append(b.matrices, b.alloc(d, fmt.Sprint("matrix ", i), b.bytes()))
	}
	for i := range 2 {
		b.matrices = append(b.matrices, b.pinned(d, fmt.Sprint("pinned ", i), b.bytes()))
	}
	b.index = b.alloc(d, "index", 4*indices)
	put(b.rig, b.s, b.index, 0, []int32{2, 0, 3, 1})
}

// compare runs a program twice in a row, then its graph, again and again, and compares what another
// stream sees after each.
func (b *board) compare(what string, other gpu.Stream, program func() error) {
	b.Helper()
	d, all := b.s.Device(), len(b.matrices)*b.bytes()
	initial, out := b.alloc(d, "initial", all), b.pinned(d, "out", all)
	put(b.rig, b.s, initial, 0, fill(all/4, func(int) float32 { return float32(b.rng.IntN(9)-4) / 4 }))
	done, read := b.event(d, "done"), b.event(d, "read")
	see := func(run func() error) []uint32 {
		for i, m := range b.matrices {
			b.must(b.s.Copy(gpu.All(m), gpu.Part(initial, i*b.bytes(), b.bytes())))
		}
		b.must(run())
		b.must(run())
		b.link(b.s, other, done)
		for i, m := range b.matrices {
			b.must(other.Copy(gpu.Part(out, i*b.bytes(), b.bytes()), gpu.All(m)))
		}
		b.link(other, b.s, read)
		b.must(other.Synchronize())
		return look[uint32](b.rig, out, 0, all/4)
	}
	want := see(program)
	g := must[gpu.Graph](b.rig)(b.s.Capture(what, program))
	for i := range 6 {
		equal(b.rig, fmt.Sprintf("%s, run %d of the graph", what, i), see(func() error { return b.s.Run(g) }), want)
	}
	b.must(b.s.Synchronize())
	b.must(g.Free())
	for _, m := range append(b.matrices, initial, b.index, out) {
		b.must(m.Free())
	}
}

// block is some rows and columns of a matrix.
func (b *board) block(matrix, row, column, rows, columns int) gpu.Region {
	return gpu.Region{Memory: b.matrices[matrix], Offset: 4 * (row*b.columns + column), Width: 4 * columns, Rows: rows, Pitch: 4 * b.columns}
}

// side is a block as a side of a product.
func (b *board) side(r gpu.Region) gpu.Matrix {
	return gpu.Matrix{Memory: r.Memory, Offset: r.Offset, Stride: b.columns}
}

// branches gives each of four groups of columns a series of operations of its own, which meet in
// products, are divided again, and then overwrites what they have read and written.
func (b *board) branches() error {
	const n = 8
	group := func(matrix, j int) gpu.Region { return b.block(matrix, 0, n*j, n, n) }
	multiply := func(c, x, y gpu.Region) error {
		return b.s.Multiply(gpu.Product{M: n, N: n, K: n, A: b.side(x), B: b.side(y), C: b.side(c)})
	}
	for j := range 4 {
		b.must(b.s.Fill(group(0, j), math.Float32bits(float32(j+1)/8)))
		b.must(multiply(group(1, j), group(0, j), group(2, 3-j)))
		b.must(b.s.Fill(group(0, j), math.Float32bits(-0.5))) // which the product has read
	}
	b.must(multiply(b.block(2, n, 0, n, n), group(1, 0), group(1, 1)))
	b.must(multiply(b.block(2, n, n, n, n), group(1, 2), group(1, 3)))
	b.must(multiply(b.block(2, n, 0, n, n), b.block(2, n, n, n, n), group(0, 0)))
	for j := range 4 {
		b.must(multiply(group(0, j), b.block(2, n, 0, n, n), group(1, j)))
		b.must(b.s.Copy(b.block(3, 0, n*j, n, n), group(0, j)))
		b.must(b.s.Copy(b.block(4, n, n*j, n, n), b.block(3, 0, n*j, n, n)))
	}
	return b.s.Fill(b.block(1, 0, 0, n, 4*n), 0)
}

// random is a random operation. It stays the same each time that it is called.
func (b *board) random() func() error {
	rng := b.rng
	rows, columns := 1+rng.IntN(8), 1+rng.IntN(16)
	any := func(matrices, rows, columns int) gpu.Region {
		return b.block(rng.IntN(matrices), rng.IntN(b.rows-rows+1), rng.IntN(33-columns), rows, columns)
	}
	for {
		switch rng.IntN(5) {
		case 0:
			dst, word := any(onDevice, rows, columns), math.Float32bits(float32(rng.IntN(9)-4)/4)
			return func() error { return b.s.Fill(dst, word) }
		case 1:
			dst, src := any(len(b.matrices), rows, columns), any(len(b.matrices), rows, columns)
			if !dst.Overlaps(src) {
				return func() error { return b.s.Copy(dst, src) }
			}
		case 2:
			y, x := any(onDevice, 1, columns), any(onDevice, 1, columns)
			if !y.Overlaps(x) {
				return func() error {
					return b.s.Launch(b.affine, gpu.Linear(columns, 32), gpu.Update(y), gpu.Read(x), gpu.Float32(0.5), gpu.Int32(int32(columns)))
				}
			}
		case 3:
			out, table := any(onDevice, indices, columns), any(onDevice, 1, columns)
			table.Width *= indices // as many rows without gaps
			if table.Check("") == nil && !out.Overlaps(table) {
				return func() error {
					return b.s.Launch(b.gather, gpu.Linear(indices, 32), gpu.Write(out), gpu.Read(table), gpu.Read(gpu.All(b.index)),
						gpu.Int32(int32(columns)), gpu.Int32(int32(b.columns)), gpu.Int32(indices))
				}
			}
		default:
			m, n, k := 1+rng.IntN(8), 1+rng.IntN(8), 1+rng.IntN(8)
			x, y, z := any(onDevice, m, k), any(onDevice, k, n), any(onDevice, m, n)
			if !z.Overlaps(x) && !z.Overlaps(y) {
				p := gpu.Product{M: m, N: n, K: k, A: b.side(x), B: b.side(y), C: b.side(z)}
				if bias := any(onDevice, 1, n); rng.IntN(2) == 0 && !bias.Overlaps(z) {
					fused := p
					fused.Epilogue = gpu.Epilogue{Bias: bias, ReLU: true}
					if must[bool](b.rig)(b.s.Fuses(fused)) {
						p = fused
					}
				}
				return func() error { return b.s.Multiply(p) }
			}
		}
	}
}
