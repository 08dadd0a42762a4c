package gputest

import (
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/testseed"
)

// pattern is n bytes that differ from others'.
func pattern(rng *rand.Rand, n int) []byte {
	return fill(n, func(int) byte { return byte(rng.Uint32()) })
}

// randomRegion is a region of rows of width bytes within m.
func randomRegion(rng *rand.Rand, m gpu.Memory, width, rows int) gpu.Region {
	pitch := width
	if rows > 1 {
		pitch += rng.IntN((m.Bytes()-rows*width)/(rows-1) + 1)
	}
	g := gpu.Region{Memory: m, Width: width, Rows: rows, Pitch: pitch}
	g.Offset = rng.IntN(m.Bytes() - g.Extent() + 1)
	return g
}

// copyRegion does on the host what Copy does.
func copyRegion(dst []byte, d gpu.Region, src []byte, s gpu.Region) {
	if d.Width == 0 {
		return // empty rows may lie behind the end
	}
	for i := range d.Rows {
		copy(dst[d.Offset+i*d.Pitch:][:d.Width], src[s.Offset+i*s.Pitch:])
	}
}

// testCopies copies random regions between memories of the host and of two devices.
func testCopies(r *rig) {
	rng := testseed.Rand(r)
	devices := r.open(2)
	s, t := r.stream(devices[0], "s"), r.stream(devices[1], "t")
	const size = 4096
	own, other, peer := r.alloc(devices[0], "own", size), r.alloc(devices[0], "other", size), r.alloc(devices[1], "peer", size)
	up, down := r.pinned(devices[0], "up", size), r.pinned(devices[1], "down", size)
	memories := []gpu.Memory{own, other, peer, up, down}
	host := make([][]byte, len(memories))
	for i, m := range memories {
		host[i] = pattern(rng, size)
		if p, ok := m.(gpu.Pinned); ok {
			set(r, p, 0, host[i])
		} else {
			put(r, map[bool]gpu.Stream{true: t, false: s}[m == peer], m, 0, host[i])
		}
	}
	for range 40 {
		a, b := rng.IntN(len(memories)), rng.IntN(len(memories))
		rows := 1 + rng.IntN(5)
		width := rng.IntN(size / 8)
		dst, src := randomRegion(rng, memories[a], width, rows), randomRegion(rng, memories[b], width, rows)
		if dst.Overlaps(src) {
			r.refuses("a copy onto itself", s.Copy(dst, src), gpu.InvalidArgument)
			continue
		}
		stream := s
		if a == 2 && b == 2 || a == 2 && b > 2 || a > 2 && b == 2 { // the other device alone has to do with it
			r.refuses("a copy by a foreign stream", s.Copy(dst, src), gpu.InvalidArgument)
			stream = t
		}
		r.must(stream.Copy(dst, src))
		r.must(stream.Synchronize())
		copyRegion(host[a], dst, host[b], src)
	}
	for i, m := range memories {
		got := []byte(nil)
		if p, ok := m.(gpu.Pinned); ok {
			got = look[byte](r, p, 0, size)
		} else {
			got = get[byte](r, map[bool]gpu.Stream{true: t, false: s}[m == peer], m, 0, size)
		}
		equal(r, "memory "+m.Name(), got, host[i])
	}
}

func testFill(r *rig) {
	d := r.open(1)[0]
	s := r.stream(d, "s")
	m := r.alloc(d, "m", 160)
	r.must(s.Fill(gpu.All(m), 0xdeadbeef))
	r.must(s.Fill(gpu.Region{Memory: m, Offset: 8, Width: 12, Rows: 3, Pitch: 40}, 7))
	want := fill(40, func(i int) uint32 {
		if i >= 2 && i < 30 && (i-2)%10 < 3 {
			return 7
		}
		return 0xdeadbeef
	})
	equal(r, "fill", get[uint32](r, s, m, 0, 40), want)
}
