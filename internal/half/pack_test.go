package half

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"aibox/internal/splitmix"
)

// TestPackIsTheScalarRounding: every element at every width, and the bits that
// are not an element's are zero.
func TestPackIsTheScalarRounding(t *testing.T) {
	const random = 0x1234567890abcdef
	for _, f := range formats {
		for n := range 40 {
			src := numbers(100, uint64(n))[:n]
			dst := make([]float32, Words(n))
			for i := range dst {
				dst[i] = math.Float32frombits(^uint32(0))
			}
			f.pack(dst, src, random)
			back := make([]float32, n)
			f.unpack(back, dst)
			for i, x := range src {
				bits := uint32(splitmix.Mix(random+uint64(i/2+1)*splitmix.Step) >> (i % 2 * 32))
				h := uint16(math.Float32bits(dst[i/2]) >> (i % 2 * 16))
				if want := f.round(x, bits); h != want || math.Float32bits(back[i]) != math.Float32bits(f.widen(want)) {
					t.Fatalf("%s, %d numbers: element %d is %#04x and %v, want %#04x", f.name, n, i, h, back[i], want)
				}
			}
			if n%2 == 1 && math.Float32bits(dst[n/2])>>16 != 0 {
				t.Errorf("%s, %d numbers: the last word is %#x", f.name, n, math.Float32bits(dst[n/2]))
			}
			again := slices.Clone(dst)
			f.pack(again, back, ^uint64(random)) // what the format has stays
			for i := range dst {
				if math.Float32bits(again[i]) != math.Float32bits(dst[i]) {
					t.Errorf("%s, %d numbers: word %d is %#x packed again, was %#x", f.name, n, i, math.Float32bits(again[i]), math.Float32bits(dst[i]))
				}
			}
		}
	}
}

// TestManyUpdatesAreUnbiased: the mean over updates, and over keys, is the
// number; and neighbouring elements round independently of one another.
func TestManyUpdatesAreUnbiased(t *testing.T) {
	const n, updates = 5, 200_000
	src := []float32{0.1, -0.37, 3e-6, 1.0001, -7e-3}
	for _, f := range formats {
		for _, over := range []string{"updates", "keys", "seeds"} {
			var up [n]int
			both := 0
			dst, back := make([]float32, Words(n)), make([]float32, n)
			for k := range uint64(updates) {
				var random uint64
				switch over {
				case "updates":
					random = NewRounding(7, k).Bits(99)
				case "keys":
					random = NewRounding(7, 3).Bits(k)
				case "seeds":
					random = NewRounding(k, 3).Bits(99)
				}
				f.pack(dst, src, random)
				f.unpack(back, dst)
				for i, x := range back {
					if math.Abs(float64(x)) > math.Abs(float64(src[i])) {
						up[i]++
					}
				}
				if math.Abs(float64(back[0])) > math.Abs(float64(src[0])) && math.Abs(float64(back[1])) > math.Abs(float64(src[1])) {
					both++
				}
			}
			var share [n]float64
			for i, x := range src {
				low := f.round(x, 0)
				a, b := f.meaning(low), f.meaning(low+1)
				share[i] = (float64(x) - a) / (b - a)
				if got, want := float64(up[i])/updates, share[i]; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/updates) {
					t.Errorf("%s over %s: %v is rounded up in %.4f of the cases, want %.4f", f.name, over, x, got, want)
				}
			}
			want := share[0] * share[1]
			if got := float64(both) / updates; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/updates) {
				t.Errorf("%s over %s: two neighbours are rounded up in %.4f of the cases, want %.4f", f.name, over, got, want)
			}
		}
	}
}

// TestTheBitsOfARounding pins the random numbers: a model trained today must be
// trained again tomorrow.
func TestTheBitsOfARounding(t *testing.T) {
	dst := make([]float32, 2)
	got := ""
	for _, f := range formats {
		f.pack(dst, []float32{0.1, -0.2, 3e-6}, NewRounding(1, 2).Bits(3))
		got += fmt.Sprintf("%08x %08x ", math.Float32bits(dst[0]), math.Float32bits(dst[1]))
	}
	if want := "b2662e67 00000033 be4d3dcd 0000364a "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPackChecksLengths(t *testing.T) {
	for _, f := range formats {
		for what, call := range map[string]func(){
			"pack":   func() { f.pack(make([]float32, 2), make([]float32, 2), 0) },
			"unpack": func() { f.unpack(make([]float32, 2), make([]float32, 2)) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: %s takes two words for two numbers", f.name, what)
					}
				}()
				call()
			}()
		}
	}
}

func BenchmarkPack16(b *testing.B) {
	for _, f := range formats {
		src := make([]float32, 16)
		for i := range src {
			src[i] = 0.01 * float32(i-8)
		}
		dst := make([]float32, 8)
		b.Run(f.name, func(b *testing.B) {
			for i := range b.N {
				f.pack(dst, src, uint64(i))
			}
		})
		b.Run(f.name+"/unpack", func(b *testing.B) {
			for range b.N {
				f.unpack(src, dst)
			}
		})
	}
}
