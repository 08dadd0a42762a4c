package offheap

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Allocations of any size are zero, aligned, as long as requested, and do not overlap.
func TestArena(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var a Arena
	type piece struct {
		b    []byte
		mark byte
	}
	var pieces []piece
	total := 0
	for total < 8<<20 {
		n := 1 + rng.IntN(200_000)
		if rng.IntN(50) == 0 {
			n = 1 << 20 // larger than the first chunk
		}
		b, err := a.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if want := (n + 7) &^ 7; len(b) != want || cap(b) != want {
			t.Fatalf("asked for %d bytes, got length %d, capacity %d", n, len(b), cap(b))
		}
		if p := uintptr(unsafe.Pointer(unsafe.SliceData(b))); p%8 != 0 {
			t.Fatalf("piece at %#x is not aligned", p)
		}
		mark := byte(1 + len(pieces)%255)
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of a new piece is %d", i, b[i])
			}
			b[i] = mark
		}
		pieces = append(pieces, piece{b, mark})
		total += n
	}
	for i, p := range pieces {
		for _, v := range p.b {
			if v != p.mark {
				t.Fatalf("piece %d was overwritten", i)
			}
		}
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	if b, err := a.Alloc(16); err != nil || len(b) != 16 {
		t.Fatalf("after Release: %d bytes, %v", len(b), err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestViews(t *testing.T) {
	b, err := Map(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Unmap(b); err != nil {
			t.Error(err)
		}
	}()
	Uint64s(b)[511] = 0x3f800000_00000001
	if f := Float32s(b); len(f) != 1024 || f[1023] != 1 {
		t.Errorf("as float32: %d, %v", len(f), f[1023])
	}
	if w := Uint32s(b); len(w) != 1024 || w[1022] != 1 {
		t.Errorf("as uint32: %d, %v", len(w), w[1022])
	}
}
