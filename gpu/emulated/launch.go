package emulated

import (
	"fmt"
	"math"
	"slices"

	"aibox/gpu"
)

// Kernels are the kernels of an image, by name.
type Kernels map[string]Kernel

// Kernel is a function that stands for a kernel of a device.
type Kernel struct {
	Params []gpu.ArgKind
	Run    func(b *Block) // computes one block
}

// Block is a block of threads.
type Block struct {
	gpu.Geometry
	Index gpu.Dim // of the block in the grid
	args  []gpu.Arg
	bytes [][]byte // of args that are regions: from the first byte to the last
}

// Linear returns the numbers [lo, hi) of the block's threads, counted in dimension X over all blocks.
func (b *Block) Linear() (lo, hi int) {
	threads := max(b.Geometry.Block.X, 1)
	return b.Index.X * threads, (b.Index.X + 1) * threads
}

// Slice returns argument i, a region, as numbers: from its first byte to its last, with the gaps
// between rows.
func Slice[T gpu.Number](b *Block, i int) []T { return gpu.As[T](b.bytes[i]) }

// Region returns argument i, a region, as it lies in its memory.
func (b *Block) Region(i int) gpu.Region { return b.args[i].Region }

// Int32 returns argument i.
func (b *Block) Int32(i int) int { return int(int32(b.args[i].Bits)) }

// Int64 returns argument i.
func (b *Block) Int64(i int) int { return int(b.args[i].Bits) }

// Float32 returns argument i.
func (b *Block) Float32(i int) float32 { return math.Float32frombits(uint32(b.args[i].Bits)) }

// module implements gpu.Module.
type module struct {
	dev     *device
	name    string
	kernels Kernels
	limits  map[string]limits
}

// function implements gpu.Kernel.
type function struct {
	dev  *device
	name string
	Kernel
	limits
}

func (f *function) Name() string { return f.name }

// Load implements gpu.Device.
func (d *device) Load(i gpu.Image) (gpu.Module, error) {
	m := &module{dev: d, name: i.Name, limits: limitsOf(i.Code)}
	err := d.p.do(d, fmt.Sprintf("Load of image %q", i.Name), func() error {
		var ok bool
		if m.kernels, ok = d.p.o.Images[i.Name]; !ok {
			return gpu.Invalid("no Go functions are known for it (Options.Images)")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Kernel implements gpu.Module.
func (m *module) Kernel(name string) (gpu.Kernel, error) {
	f := &function{dev: m.dev, name: name, limits: m.limits[name]}
	err := m.dev.p.do(m.dev, fmt.Sprintf("kernel %q of image %q", name, m.name), func() error {
		var ok bool
		if f.Kernel, ok = m.kernels[name]; !ok {
			return gpu.Invalid("there is no such kernel")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Launch implements gpu.Stream.
func (s *stream) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	args = slices.Clone(args)
	return s.do(fmt.Sprintf("kernel %q", k.Name()), func() (work, error) {
		f, ok := k.(*function)
		if !ok || f.dev != s.dev {
			return work{}, gpu.Invalid("the kernel was loaded on another device")
		}
		if len(args) != len(f.Params) {
			return work{}, gpu.Invalid("%d arguments for %d parameters", len(args), len(f.Params))
		}
		if err := gpu.CheckLaunch(s.dev.Info(), g, args); err != nil {
			return work{}, err
		}
		if err := f.check(s.dev.Info(), g); err != nil {
			return work{}, err
		}
		var w work
		for i, a := range args {
			if a.Kind != f.Params[i] {
				return work{}, gpu.Invalid("argument %d is %v where the kernel has %v", i, a.Kind, f.Params[i])
			}
			if !a.IsRegion() {
				continue
			}
			if _, err := s.local(fmt.Sprintf("argument %d", i), a.Region); err != nil {
				return work{}, err
			}
			w.uses = append(w.uses, a)
		}
		w.run = func() error { return s.dev.p.launch(f, g, args) }
		return w, nil
	})
}

// launch runs all blocks of a kernel.
func (p *Platform) launch(f *function, g gpu.Geometry, args []gpu.Arg) error {
	b := Block{Geometry: g, args: args, bytes: make([][]byte, len(args))}
	copies := make([]*stage, len(args))
	for i, a := range args {
		if a.IsRegion() {
			copies[i] = newStage(a)
			b.bytes[i] = copies[i].region()
		}
	}
	undefined := p.anyBroken() && slices.ContainsFunc(copies, (*stage).undefined)
	nx, ny := max(g.Grid.X, 1), max(g.Grid.Y, 1)
	for _, n := range p.rng.Perm(g.Grid.Count()) {
		b.Index = gpu.Dim{X: n % nx, Y: n / nx % ny, Z: n / nx / ny}
		f.Run(&b)
	}
	for i, c := range copies {
		if c == nil {
			continue
		}
		if err := c.check(i); err != nil && !(undefined && err.Kind == LeftOut) {
			return err
		}
	}
	for _, c := range copies {
		if c != nil {
			c.store()
		}
	}
	return nil
}

// guard is how many bytes lie before and behind a region that a kernel works on, at least.
const guard = 256

// stage is the copy of an argument's region that a kernel works on. It has the same alignment as
// the region, so that numbers that a device could not read there cannot be read here either
// (gpu.As).
type stage struct {
	gpu.Arg
	memory []byte // that the argument lies in
	front  int    // where the region begins in all
	all    []byte // guard, region, guard
}

func newStage(a gpu.Arg) *stage {
	s := &stage{Arg: a, memory: bare(a.Region.Memory).data, front: guard + a.Region.Offset%8}
	s.all = newMemory(nil, "", s.front+a.Region.Extent()+guard, false).data
	if a.Kind != gpu.WriteArg {
		s.rows(func(mine, original []byte, _ int) { copy(mine, original) })
	}
	return s
}

func (s *stage) region() []byte {
	return s.all[s.front : len(s.all)-guard : len(s.all)-guard]
}

// rows calls f for each row, with its place in s.all.
func (s *stage) rows(f func(mine, original []byte, place int)) {
	r := s.Region
	for i := range count(r) {
		at := s.front + i*r.Pitch
		f(s.all[at:at+r.Width], s.memory[r.Offset+i*r.Pitch:][:r.Width], at)
	}
}

// undefined reports whether the kernel reads unwritten bytes. If another device is broken, these
// may be bytes that it would have written; the kernel's results are then undefined, too.
func (s *stage) undefined() bool {
	if s == nil || s.Kind == gpu.WriteArg {
		return false
	}
	at := -1
	s.rows(func(mine, _ []byte, place int) { at = max(at, hasPoison(mine, place)) })
	return at >= 0
}

// check compares what the kernel has written with what it declared, for argument i.
func (s *stage) check(i int) *Hazard {
	outside, leftOut := -1, -1
	found := func(where *int, from, i int) {
		if *where < 0 && i >= 0 {
			*where = from + i
		}
	}
	end := 0 // of the row before
	s.rows(func(mine, original []byte, at int) {
		found(&outside, end, notPoison(s.all[end:at], end))
		end = at + len(mine)
		switch s.Kind {
		case gpu.ReadArg:
			found(&outside, at, difference(mine, original))
		case gpu.WriteArg:
			found(&leftOut, at, hasPoison(mine, at))
		}
	})
	found(&outside, end, notPoison(s.all[end:], end))
	where := func(at int) string {
		return fmt.Sprintf("argument %d, %v, byte %d of the memory", i, s.Region, s.Region.Offset+at-s.front)
	}
	switch {
	case outside >= 0:
		return &Hazard{Kind: Outside, Where: where(outside)}
	case leftOut >= 0:
		return &Hazard{Kind: LeftOut, Where: where(leftOut)}
	}
	return nil
}

// difference returns where two slices of the same length differ first, or -1.
func difference(a, b []byte) int {
	for i, v := range a {
		if v != b[i] {
			return i
		}
	}
	return -1
}

// store puts what the kernel has written into the memory.
func (s *stage) store() {
	if s.Writes() {
		s.rows(func(mine, original []byte, _ int) { copy(original, mine) })
	}
}
