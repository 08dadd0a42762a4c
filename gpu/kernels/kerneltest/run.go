package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/half"
)

// Subject is a kind of device.
type Subject struct {
	Name string
	// Open returns a device, whatever is not closed with it ends with the test.
	Open func(t *testing.T, seed uint64) gpu.Device
}

// trials are all trials, by the name of what they try.
var trials []trial

type trial struct {
	name string
	run  func(r *rig)
}

// add adds a trial. Its result means nothing: a declaration needs one.
var add = func(name string, run func(r *rig)) bool {
	trials = append(trials, trial{name, run})
	return true
}

// rounds is how often a trial runs, each time with other random numbers.
func rounds() uint64 {
	if testing.Short() {
		return 3
	}
	return 12
}

// Run runs all trials on each subject, and compares what they leave in memory with that of the first.
// Every kernel must have been launched in the end.
func Run(t *testing.T, seed uint64, subjects ...Subject) {
	launched := map[string]bool{}
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			for round := range rounds() {
				var first []left
				for i, s := range subjects {
					r := newRig(t, s, seed+round, launched)
					r.first = round == 0
					tr.run(r)
					all := r.finish()
					if i == 0 {
						first = all
					} else {
						compare(t, subjects[0].Name, s.Name, first, all)
					}
					if t.Failed() {
						t.Fatalf("round %d on %s", round, s.Name)
					}
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	for _, name := range kernels.Names() {
		if !launched[name] {
			t.Errorf("no trial launched kernel %q", name)
		}
	}
}

// left is what a trial left in a memory.
type left struct {
	name  string
	bytes int // of each number
	data  []byte
}

// compare fails the test unless two devices left the same numbers.
func compare(t *testing.T, nameA, nameB string, a, b []left) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d arrays on %s, %d on %s", len(a), nameA, len(b), nameB)
	}
	for i := range a {
		if at := difference(a[i].data, b[i].data, a[i].bytes); at >= 0 {
			x, xBits := number(a[i].data[at:], a[i].bytes)
			y, yBits := number(b[i].data[at:], b[i].bytes)
			t.Errorf("%s, byte %d: %v (%#x) on %s, %v (%#x) on %s", a[i].name, at, x, xBits, nameA, y, yBits, nameB)
		}
	}
}

// difference is where the first numbers lie of which a and b do not have the same bits, unless both
// are NaN; -1 if there are none. A NaN that arithmetic makes is 0x7fffffff on CUDA devices, and its
// upper half or what it is in float64 looks like it, too; on other processors it is another.
func difference(a, b []byte, size int) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for at := 0; at < len(a); at += size {
		x, xBits := number(a[at:], size)
		y, yBits := number(b[at:], size)
		if xBits != yBits && (x == x || y == y) {
			return at
		}
	}
	return -1
}

// number is the first one of data, and its bits. Memory ends at a multiple of 4 bytes.
func number(data []byte, size int) (x float64, bits uint64) {
	switch min(size, len(data)) {
	case 2:
		h := binary.LittleEndian.Uint16(data)
		return float64(half.FromBFloat16(h)), uint64(h)
	case 8:
		bits = binary.LittleEndian.Uint64(data)
		return math.Float64frombits(bits), bits
	}
	w := binary.LittleEndian.Uint32(data)
	return float64(math.Float32frombits(w)), uint64(w)
}

// rig is what a trial works with.
type rig struct {
	*testing.T
	*rand.Rand
	where    string
	first    bool // round, in which every kernel is launched
	poisoned bool // garbage is NaN
	dev      gpu.Device
	s        gpu.Stream
	k        *kernels.Set
	arrays   []*array
}

func newRig(t *testing.T, s Subject, seed uint64, launched map[string]bool) *rig {
	r := &rig{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), where: s.Name}
	r.poisoned = r.IntN(2) == 0
	r.dev = s.Open(t, seed)
	var err error
	r.k, err = kernels.Load(r.dev)
	r.must(err)
	stream, err := r.dev.NewStream("trial")
	r.must(err)
	r.s = recorder{stream, launched}
	return r
}

// recorder notes which kernels are launched.
type recorder struct {
	gpu.Stream
	launched map[string]bool
}

func (s recorder) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	s.launched[k.Name()] = true
	return s.Stream.Launch(k, g, args...)
}

// must ends the test if there is an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", r.where, err)
	}
}

// finish returns what all arrays hold, and closes the device.
func (r *rig) finish() []left {
	r.Helper()
	var all []left
	for i, a := range r.arrays {
		all = append(all, left{fmt.Sprintf("array %d (%v)", i, a), a.bytes, r.download(a)})
	}
	r.must(r.dev.Close())
	return all
}
