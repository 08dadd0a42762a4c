package emulated_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
)

// A random program is a list of instructions over streams of several devices and their
// memories. What it means is what a sequential interpreter computes (interpret). It is run on emulated
// devices (run) with the waits that make its order right: weave finds them, by comparing
// all pairs of instructions.

const (
	modelDevices = 3
	modelStreams = 2  // of each device
	modelSize    = 96 // bytes of each memory
	host         = -1 // as a stream: the host itself
)

// instruction is one step of a program. Memories are numbered: those of the devices first, two each,
// then two pinned ones.
type instruction struct {
	op       string // fill, copy, mix, sum, graph, read, write
	stream   int    // device*modelStreams + number; host
	dst, src gpu.Region
	to, of   int // numbers of the memories of dst and src
	word     uint32
	waits    []int // earlier instructions that are waited for before
}

func (i *instruction) String() string {
	return fmt.Sprintf("%s in %d: %v <- %v", i.op, i.stream, i.dst, i.src)
}

// access is a part of a memory that an instruction uses.
type access struct {
	memory int
	region gpu.Region
	writes bool
}

func (i *instruction) accesses() []access {
	switch i.op {
	case "fill", "graph", "write":
		return []access{{i.to, i.dst, true}}
	case "read":
		return []access{{i.of, i.src, false}}
	case "sum":
		all := make([]access, modelDevices)
		for d := range all {
			r := i.dst
			r.Memory = space(2 * d)
			all[d] = access{2 * d, r, true}
		}
		return all
	}
	return []access{{i.to, i.dst, true}, {i.of, i.src, false}}
}

// streams are those in which the instruction is.
func (i *instruction) streams() []int {
	if i.op == "sum" {
		return []int{0, modelStreams, 2 * modelStreams}
	}
	return []int{i.stream}
}

// space stands for a memory while a program is made.
type space int

func (s space) Name() string { return fmt.Sprint("memory ", int(s)) }
func (s space) Bytes() int   { return modelSize }
func (s space) Free() error  { return nil }

const (
	firstPinned = 2 * modelDevices
	memories    = firstPinned + 2
)

// conflict tells whether two instructions must be ordered.
func conflict(a, b *instruction) bool {
	for _, x := range a.accesses() {
		for _, y := range b.accesses() {
			if (x.writes || y.writes) && x.region.Overlaps(y.region) {
				return true
			}
		}
	}
	return false
}

// words is a random region of whole words of a memory, of some rows of the given size.
func words(rng *rand.Rand, memory, rows, width int) gpu.Region {
	r := gpu.Region{Memory: space(memory), Width: width, Rows: rows, Pitch: width}
	if rows > 1 {
		r.Pitch += 4 * rng.IntN((modelSize-rows*width)/4/(rows-1)+1)
	}
	r.Offset = 4 * rng.IntN((modelSize-r.Extent())/4+1)
	return r
}

// randomProgram returns a program without waits.
func randomProgram(rng *rand.Rand, n int) []instruction {
	var program []instruction
	for len(program) < n {
		rows, width := 1+rng.IntN(3), 4*(1+rng.IntN(5))
		i := instruction{stream: rng.IntN(modelDevices * modelStreams), word: math.Float32bits(rng.Float32())}
		device := i.stream / modelStreams
		own := func() int { return 2*device + rng.IntN(2) }
		i.op = []string{"fill", "copy", "copy", "copy", "mix", "mix", "sum", "graph", "read", "write"}[rng.IntN(10)]
		switch i.op {
		case "fill", "graph":
			i.to = own()
		case "copy":
			i.to, i.of = own(), rng.IntN(memories)
			if rng.IntN(2) == 0 {
				i.to, i.of = i.of, i.to
			}
		case "mix":
			i.to, i.of = own(), own()
		case "sum":
			rows, i.stream = 1, 0
		case "read":
			i.stream, i.of = host, firstPinned+rng.IntN(2)
			rows = 1
		case "write":
			i.stream, i.to = host, firstPinned+rng.IntN(2)
			rows = 1
		}
		i.dst, i.src = words(rng, i.to, rows, width), words(rng, i.of, rows, width)
		if i.op == "mix" {
			i.src = words(rng, i.of, 1, rows*width)
		}
		if (i.op == "copy" || i.op == "mix") && i.dst.Overlaps(i.src) {
			continue
		}
		program = append(program, i)
	}
	return program
}

// weave adds waits to a program. It returns those that are necessary: without one of them two
// instructions that conflict are not ordered. The first number is that of the
// instruction, the second the place among its waits.
func weave(program []instruction) (necessary [][2]int) {
	before := make([]map[int]bool, len(program)) // what is ordered before each instruction
	latest := map[int]int{}                      // the last instruction of each stream, and of the host
	add := func(to map[int]bool, i int) {
		to[i] = true
		for j := range before[i] {
			to[j] = true
		}
	}
	hostKnows := map[int]bool{}
	for n := range program {
		i := &program[n]
		base := map[int]bool{}
		for j := range hostKnows {
			base[j] = true
		}
		for _, s := range i.streams() {
			if last, ok := latest[s]; ok {
				add(base, last)
			}
		}
		ordered := func(without int) map[int]bool {
			known := map[int]bool{}
			for j := range base {
				known[j] = true
			}
			for k, j := range i.waits {
				if k != without {
					add(known, j)
				}
			}
			return known
		}
		for j := n - 1; j >= 0; j-- {
			if conflict(i, &program[j]) && !ordered(-1)[j] {
				i.waits = append(i.waits, j)
			}
		}
		for k, j := range i.waits {
			if !ordered(k)[j] {
				necessary = append(necessary, [2]int{n, k})
			}
		}
		before[n] = ordered(-1)
		for _, s := range i.streams() {
			latest[s] = n
		}
		if i.stream == host {
			for j := range before[n] {
				hostKnows[j] = true
			}
			hostKnows[n] = true
		}
	}
	return necessary
}

// state is what a program computes: all memories, and what the host has read.
type state struct {
	memory [memories][]byte
	read   []byte
}

func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func putFloat(b []byte, v float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(v)) }

func interpret(program []instruction) *state {
	var s state
	for m := range s.memory {
		s.memory[m] = make([]byte, modelSize)
	}
	for n := range program {
		i := &program[n]
		to, of := s.memory[i.to], s.memory[i.of]
		row := func(data []byte, r gpu.Region, k int) []byte { return data[r.Offset+k*r.Pitch:][:r.Width] }
		for k := range i.dst.Rows {
			switch i.op {
			case "fill", "graph", "write":
				for d := row(to, i.dst, k); len(d) > 0; d = d[4:] {
					binary.LittleEndian.PutUint32(d, i.word)
				}
			case "copy":
				copy(row(to, i.dst, k), row(of, i.src, k))
			case "read":
				s.read = append(s.read, row(of, i.src, k)...)
			}
		}
		switch i.op {
		case "mix":
			x := row(of, i.src, 0)
			for k := range i.dst.Rows {
				for y := row(to, i.dst, k); len(y) > 0; x, y = x[4:], y[4:] {
					putFloat(y, float32(3*float(y))+float(x))
				}
			}
		case "sum":
			for at := i.dst.Offset; at < i.dst.Offset+i.dst.Extent(); at += 4 {
				sum := float32(0)
				for d := range modelDevices {
					sum += float(s.memory[2*d][at:])
				}
				for d := range modelDevices {
					putFloat(s.memory[2*d][at:], sum)
				}
			}
		}
	}
	return &s
}

// run runs a program on emulated devices. The wait that skip names is left out.
func run(program []instruction, seed uint64, skip [2]int) (*state, error) {
	p := emulated.New(emulated.Options{Devices: emulated.Devices(modelDevices, 1<<20), Images: images, Seed: seed})
	failed := error(nil)
	check := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	var devices []gpu.Device
	var streams []gpu.Stream
	var mix []gpu.Kernel
	var all []gpu.Memory
	for n := range modelDevices {
		d, err := p.Open(n)
		check(err)
		devices = append(devices, d)
		m, err := d.Load(gpu.Image{Name: "gputest"})
		check(err)
		k, err := m.Kernel("mix")
		check(err)
		mix = append(mix, k)
		for i := range modelStreams {
			s, err := d.NewStream(fmt.Sprint(i))
			check(err)
			streams = append(streams, s)
		}
		for i := range 2 {
			m, err := d.Alloc(fmt.Sprint(i), modelSize)
			check(err)
			all = append(all, m)
			check(streams[len(streams)-1].Fill(gpu.All(m), 0))
		}
		check(d.Synchronize())
	}
	var pins []gpu.Pinned
	for i := range 2 {
		m, err := devices[0].AllocPinned(fmt.Sprint("pinned ", i), modelSize)
		check(err)
		b, err := m.Writing(0, modelSize)
		check(err)
		clear(b)
		pins = append(pins, m)
		all = append(all, m)
	}
	group, err := p.Group(devices)
	check(err)
	events := make([]gpu.Event, len(program)) // behind each instruction of a stream
	result := &state{}
	for n := range program {
		i := &program[n]
		dst, src := i.dst, i.src
		dst.Memory, src.Memory = all[i.to], all[i.of]
		for k, j := range i.waits {
			if skip == [2]int{n, k} || events[j] == nil {
				continue
			}
			if i.stream == host {
				check(events[j].Synchronize())
			} else {
				check(streams[i.stream].Wait(events[j]))
			}
		}
		if i.stream == host {
			var b []byte
			switch i.op {
			case "read":
				b, err = pins[i.of-firstPinned].Reading(src.Offset, src.Width)
				result.read = append(result.read, b...)
			case "write":
				b, err = pins[i.to-firstPinned].Writing(dst.Offset, dst.Width)
				for ; len(b) > 0; b = b[4:] {
					binary.LittleEndian.PutUint32(b, i.word)
				}
			}
			check(err)
			continue
		}
		s := streams[i.stream]
		switch i.op {
		case "fill":
			check(s.Fill(dst, i.word))
		case "graph":
			g, err := s.Capture("g", func() error { // each row in an operation of its own
				for k := range dst.Rows {
					if err := s.Fill(gpu.Part(dst.Memory, dst.Offset+k*dst.Pitch, dst.Width), i.word); err != nil {
						return err
					}
				}
				return nil
			})
			check(err)
			if err == nil {
				check(s.Run(g))
			}
		case "copy":
			check(s.Copy(dst, src))
		case "mix":
			check(s.Launch(mix[i.stream/modelStreams], gpu.Linear(dst.Rows*dst.Width/4, 4), gpu.Update(dst), gpu.Read(src),
				gpu.Int32(int32(dst.Rows)), gpu.Int32(int32(dst.Width/4)), gpu.Int32(int32(dst.Pitch/4))))
		case "sum":
			var arrays []gpu.Region
			var in []gpu.Stream
			for d, k := range i.streams() {
				arrays, in = append(arrays, gpu.Part(all[2*d], dst.Offset, dst.Extent())), append(in, streams[k])
			}
			check(group.AllReduce(in, arrays))
		}
		events[n], err = s.Device().NewEvent(fmt.Sprint(n))
		if check(err); failed != nil {
			return nil, failed
		}
		check(s.Record(events[n]))
	}
	for _, d := range devices {
		check(d.Synchronize())
	}
	for m := range all {
		pin := pins[0]
		if m < firstPinned {
			s := streams[m/2*modelStreams]
			check(s.Copy(gpu.All(pin), gpu.All(all[m])))
			check(s.Synchronize())
		} else {
			pin = pins[m-firstPinned]
		}
		if m == firstPinned {
			continue // it has served for the others
		}
		b, err := pin.Reading(0, modelSize)
		check(err)
		result.memory[m] = slices.Clone(b)
	}
	for _, d := range devices {
		check(d.Close())
	}
	return result, failed
}

// TestRandomPrograms runs random programs with several seeds of the platform, and then with each
// time one necessary wait missing.
func TestRandomPrograms(t *testing.T) {
	rng := testseed.Rand(t)
	programs, left := 60, 0
	if testing.Short() {
		programs = 15
	}
	none := [2]int{-1, -1}
	for range programs {
		seed := rng.Uint64()
		make := rand.New(rand.NewPCG(seed, 1))
		program := randomProgram(make, 40)
		necessary := weave(program)
		want := interpret(program)
		for _, s := range []uint64{0, make.Uint64(), make.Uint64(), make.Uint64()} {
			got, err := run(program, s, none)
			if err != nil {
				t.Fatalf("program %d, platform %d: %v", seed, s, err)
			}
			if string(got.read) != string(want.read) {
				t.Errorf("program %d, platform %d: the host has read\n%x, want\n%x", seed, s, got.read, want.read)
			}
			for m, b := range got.memory {
				if m != firstPinned && string(b) != string(want.memory[m]) {
					t.Errorf("program %d, platform %d: memory %d is\n%x, want\n%x", seed, s, m, b, want.memory[m])
				}
			}
		}
		for _, skip := range necessary {
			_, err := run(program, make.Uint64(), skip)
			var h *emulated.Hazard
			if !errors.As(err, &h) || h.Kind != emulated.Race {
				t.Fatalf("program %d without the wait of [%v] for [%v]: %v", seed, &program[skip[0]], &program[program[skip[0]].waits[skip[1]]], err)
			}
			left++
		}
	}
	if left < programs {
		t.Errorf("only %d waits were necessary", left)
	}
	t.Logf("%d waits were left out", left)
}
