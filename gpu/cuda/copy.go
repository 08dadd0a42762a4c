//go:build nvidia && linux && amd64

package cuda

// #cgo noescape aibox_copy
// #cgo nocallback aibox_copy
// #include "driver.h"
import "C"

import (
	"slices"
	"unsafe"

	"aibox/gpu"
)

// Copy implements gpu.Stream.
func (s *stream) Copy(dst, src gpu.Region) error { return s.failed("Copy", s.copy(dst, src)) }

func (s *stream) copy(dst, src gpu.Region) error {
	if err := s.dev.ready(); err != nil {
		return err
	}
	from, err := s.region("the source", src)
	if err != nil {
		return err
	}
	to, err := s.region("the destination", dst)
	if err != nil {
		return err
	}
	away := func(m *memory) bool { return !m.pinned && m.dev != s.dev }
	switch {
	case dst.Width != src.Width || dst.Rows != src.Rows:
		return gpu.Invalid("%d rows of %d bytes to %d rows of %d", src.Rows, src.Width, dst.Rows, dst.Width)
	case dst.Overlaps(src):
		return gpu.Invalid("source and destination overlap")
	case away(from) && away(to), away(from) && to.pinned, away(to) && from.pinned:
		return gpu.Invalid("neither %v nor %v is of the stream's device", from, to)
	}
	if count(dst) == 0 {
		return nil
	}
	c := C.aibox_copy_t{
		dst: C.uint64_t(to.address) + C.uint64_t(dst.Offset), src: C.uint64_t(from.address) + C.uint64_t(src.Offset),
		dst_pitch: pitch(dst), src_pitch: pitch(src), width: C.uint64_t(dst.Width), rows: C.uint64_t(dst.Rows),
		max_pitch: C.uint64_t(s.dev.p.maxPitch[s.dev.number]),
	}
	if from.pinned && to.pinned {
		return s.copyHost(c, dst, src)
	}
	if away(from) || away(to) {
		for _, m := range []*memory{from, to} {
			if m.dev.closed {
				return gpu.Invalid("device %d, to which %v belongs, was closed", m.dev.number, m)
			}
			s.dev.reach(m.dev)
		}
		// The driver does not capture copies that name contexts, but it finds the contexts itself
		// if each is that of its device.
		if s.capture == nil {
			c.by_peers, c.dst_ctx, c.src_ctx = 1, number(to.dev), number(from.dev)
		}
	}
	if s.capture != nil {
		captured := c
		s.capture.addCopy(dst, src, func(l *lane) error { return s.copyIn(l, captured, from.dev, to.dev) })
		return nil
	}
	return s.copyIn(&s.lane, c, from.dev, to.dev)
}

// addCopy adds a copy to the graph.
func (g *graph) addCopy(dst, src gpu.Region, enqueue func(*lane) error) {
	g.add("Copy", []gpu.Arg{gpu.Read(src), gpu.Write(dst)}, enqueue)
}

// copyIn copies in a lane.
func (s *stream) copyIn(l *lane, c C.aibox_copy_t, from, to *device) error {
	r := C.aibox_copy(s.dev.ctx, l.handle, &c)
	if r != 0 {
		for _, d := range [...]*device{from, to} {
			if d == s.dev {
				continue
			}
			if d.look(); d.broken != nil { // it is not this device that the error is about
				return d.broken
			}
		}
	}
	return s.dev.check(r)
}

// number is the context of a device as a number.
func number(d *device) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(d.ctx))) }

// copyHost copies between pinned memories on a thread of the driver, because a driver copy would
// block the host.
func (s *stream) copyHost(c C.aibox_copy_t, dst, src gpu.Region) error {
	g := s.capture
	if g == nil {
		return s.dev.check(C.aibox_host_copy(s.dev.ctx, s.handle, &c, nil))
	}
	g.addCopy(dst, src, func(l *lane) error {
		var held unsafe.Pointer
		err := s.dev.check(C.aibox_host_copy(s.dev.ctx, l.handle, &c, &held))
		if err == nil {
			g.held = append(g.held, held)
		}
		return err
	})
	return nil
}

// reach enables direct copies between d and memory of o, if the hardware supports them. Otherwise
// the driver copies through host memory.
func (d *device) reach(o *device) {
	if o.number == d.number || slices.Contains(d.peers, o) {
		return
	}
	d.peers = append(d.peers, o)
	if d.p.Link(d.number, o.number) != gpu.LinkHost {
		_ = d.on(func() error { _ = o.context.EnablePeerAccess(0); return nil })
	}
}
