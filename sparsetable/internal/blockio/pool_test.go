package blockio

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestPoolClasses(t *testing.T) {
	p := NewPool(512, 0)
	last := 0
	for n := 1; n < 1<<20; n += 1 + n/7 {
		class, size := p.class(n)
		if size < n || n > 1024 && size > n*3/2+512 {
			t.Fatalf("%d bytes get %d", n, size)
		}
		if again, same := p.class(size); again != class || same != size {
			t.Fatalf("a buffer of %d bytes is of class %d, then of %d", size, class, again)
		}
		if size < last {
			t.Fatalf("%d bytes get %d, fewer got %d", n, size, last)
		}
		last = size
	}
}

func TestPool(t *testing.T) {
	p := NewPool(512, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	held := map[*byte][]byte{}
	for range 3000 {
		if len(held) > 50 || len(held) > 0 && rng.IntN(2) == 0 {
			for at, b := range held {
				for i := range b {
					if b[i] != byte(len(b)) {
						t.Fatal("two buffers share memory")
					}
				}
				delete(held, at)
				p.Put(b)
				break
			}
			continue
		}
		b, err := p.Get(1 + rng.IntN(1<<rng.IntN(18)))
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&b[0])); at%512 != 0 {
			t.Fatalf("buffer at %#x", at)
		}
		for i := range b {
			b[i] = byte(len(b))
		}
		held[&b[0]] = b
	}
	var inUse int64
	for _, b := range held {
		inUse += int64(cap(b))
	}
	if p.InUse() != inUse || p.Bytes() < inUse {
		t.Errorf("in use %d, mapped %d; handed out %d", p.InUse(), p.Bytes(), inUse)
	}
	p.Close()
	if p.Bytes() == 0 {
		t.Error("Close unmapped buffers in use")
	}
	if _, err := p.Get(1); !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	for _, b := range held {
		p.Put(b)
	}
	if p.Bytes() != 0 {
		t.Errorf("%d bytes mapped after the last Put", p.Bytes())
	}
}

func TestPoolLimit(t *testing.T) {
	p := NewPool(4096, 3*4096)
	var held [][]byte
	for range 3 {
		b, err := p.Get(4096)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	if _, err := p.Get(4096); !errors.Is(err, ErrPoolLimit) {
		t.Errorf("Get over the limit: %v", err)
	}
	p.Put(held[0][:100]) // shortened buffers go back too
	if _, err := p.Get(4096); err != nil {
		t.Errorf("Get after Put: %v", err)
	}
}

func TestPoolSteadyStateDoesNotAllocate(t *testing.T) {
	p := NewPool(512, 0)
	if n := testing.AllocsPerRun(100, func() {
		b, err := p.Get(3000)
		if err != nil {
			t.Fatal(err)
		}
		p.Put(b)
	}); n != 0 {
		t.Errorf("%v allocations a Get and Put", n)
	}
}

// A pool at its limit reuses the memory of buffers of one size for buffers of another.
func TestPoolReclaims(t *testing.T) {
	const limit = 1 << 20
	p := NewPool(512, limit)
	defer p.Close()
	for _, size := range []int{512, 4096, 1536, 100 << 10, 512} {
		var all [][]byte
		for n := 0; n+2*size <= limit*2/3; n += size {
			b, err := p.Get(size)
			if err != nil {
				t.Fatalf("buffer %d of %d bytes: %v", len(all), size, err)
			}
			all = append(all, b)
		}
		if got := p.Bytes(); got > limit {
			t.Errorf("%d bytes mapped, limit %d", got, limit)
		}
		for _, b := range all {
			p.Put(b)
		}
	}
}

// Memory is mapped in whole pages, so the limit counts pages.
func TestPoolCountsPages(t *testing.T) {
	const limit, page = 800 << 10, 4096
	for _, size := range []int{512, 1024, 1536, 3072, 6144} {
		p, pages := NewPool(512, limit), int64(0)
		for {
			if _, err := p.Get(size); errors.Is(err, ErrPoolLimit) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range p.mu.slabs {
			pages += (int64(len(s.memory)) + page - 1) / page
		}
		if pages*page > limit || p.Bytes() != pages*page || p.InUse() < limit*3/4-limit/slabsPerLimit {
			t.Errorf("buffers of %d bytes: %d are in use in %d pages, which count as %d bytes, limit %d", size, p.InUse(), pages, p.Bytes(), limit)
		}
	}
}

// Memory that was taken beyond the limit is freed when it is returned to the pool.
func TestPoolBeyondLimit(t *testing.T) {
	const limit = 64 << 10
	p := NewPool(512, limit)
	defer p.Close()
	small, err := p.Get(512)
	if err != nil {
		t.Fatal(err)
	}
	var held [][]byte
	for {
		b, err := p.Get(8 << 10)
		if errors.Is(err, ErrPoolLimit) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	before := p.Bytes()
	beyond, err := p.GetBeyond(40 << 10)
	if err != nil || len(beyond) != 40<<10 {
		t.Fatalf("%d bytes, %v", len(beyond), err)
	}
	if got := p.Bytes(); got <= limit || got > before+48<<10 {
		t.Errorf("%d bytes mapped, %d before, limit %d", got, before, limit)
	}
	p.Put(beyond)
	if got := p.Bytes(); got > limit {
		t.Errorf("%d bytes mapped after Put, limit %d", got, limit)
	}
	for _, b := range append(held, small) {
		p.Put(b)
	}
	if p.InUse() != 0 {
		t.Errorf("%d bytes in use", p.InUse())
	}
}
