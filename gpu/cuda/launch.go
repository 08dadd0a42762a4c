//go:build nvidia && linux && amd64

package cuda

// #cgo noescape aibox_launch
// #cgo nocallback aibox_launch
// #include "driver.h"
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"aibox/gpu"
)

// module implements gpu.Module.
type module struct {
	dev      *device
	image    gpu.Image // without its code
	declared map[string][]int
	handle   C.CUmodule
}

// function implements gpu.Kernel.
type function struct {
	dev    *device
	name   string
	params []gpu.ArgKind // nil: only their sizes are known
	bits   []int         // sizes of the parameters
	handle C.CUfunction
	shared int // bytes of dynamic shared memory that it may have
}

func (f *function) Name() string { return f.name }

// Load implements gpu.Device.
func (d *device) Load(i gpu.Image) (gpu.Module, error) {
	m := &module{dev: d, image: gpu.Image{Name: i.Name, Params: i.Params}}
	err := d.ready()
	if err == nil {
		err = m.load(i)
	}
	if err != nil {
		return nil, complete(err, d.number, fmt.Sprintf("Load of image %q", i.Name))
	}
	d.modules = append(d.modules, m)
	return m, nil
}

func (m *module) load(i gpu.Image) error {
	if len(i.Code) == 0 {
		return gpu.Invalid("it has no code")
	}
	m.declared = parameters(i.Code)
	if err := checkParams(i, m.declared); err != nil {
		return err
	}
	code := append(i.Code[:len(i.Code):len(i.Code)], 0) // text ends with a zero byte
	log := make([]byte, 4096)
	r := C.aibox_module(m.dev.ctx, unsafe.Pointer(&code[0]), &m.handle, (*C.char)(unsafe.Pointer(&log[0])), C.size_t(len(log)))
	err := m.dev.check(r)
	if e, ok := err.(*gpu.Error); ok {
		if text, _, _ := strings.Cut(string(log), "\x00"); text != "" {
			full := *e
			full.Reason += ": " + strings.TrimSpace(text)
			return &full
		}
	}
	return err
}

// Kernel implements gpu.Module.
func (m *module) Kernel(name string) (gpu.Kernel, error) {
	f := &function{dev: m.dev, name: name}
	err := m.dev.ready()
	if err == nil {
		err = m.find(f)
	}
	if err != nil {
		return nil, complete(err, m.dev.number, fmt.Sprintf("kernel %q of image %q", name, m.image.Name))
	}
	return f, nil
}

func (m *module) find(f *function) error {
	var ok bool
	if f.params, ok = m.image.Params[f.name]; ok {
		f.bits = sizes(f.params)
	} else if f.bits, ok = m.declared[f.name]; !ok {
		return gpu.Invalid("neither the code nor Image.Params says what its parameters are")
	}
	if len(f.bits) > C.AIBOX_MAX_ARGUMENTS {
		return gpu.Invalid("it has %d parameters; no more than %d are possible", len(f.bits), C.AIBOX_MAX_ARGUMENTS)
	}
	name := C.CString(f.name)
	defer C.free(unsafe.Pointer(name))
	return m.dev.check(C.aibox_function(m.dev.ctx, m.handle, name, &f.handle))
}

// Launch implements gpu.Stream.
func (s *stream) Launch(k gpu.Kernel, g gpu.Geometry, args ...gpu.Arg) error {
	err := s.launch(k, g, args)
	if err == nil {
		return nil
	}
	return s.failed(fmt.Sprintf("kernel %q", k.Name()), err)
}

func (s *stream) launch(k gpu.Kernel, g gpu.Geometry, args []gpu.Arg) error {
	d := s.dev
	if err := d.ready(); err != nil {
		return err
	}
	f, ok := k.(*function)
	if !ok || f.dev != d {
		return gpu.Invalid("the kernel was loaded on another device")
	}
	if len(args) != len(f.bits) {
		return gpu.Invalid("%d arguments for %d parameters", len(args), len(f.bits))
	}
	if err := gpu.CheckLaunch(d.p.infos[d.number], g, args); err != nil {
		return err
	}
	for i := range args {
		a := &args[i]
		if f.params != nil && a.Kind != f.params[i] {
			return gpu.Invalid("argument %d is %v where the kernel has %v", i, a.Kind, f.params[i])
		}
		if size(a.Kind) != f.bits[i] {
			return gpu.Invalid("argument %d is %v where the kernel has a parameter of %d bits", i, a.Kind, f.bits[i])
		}
		if !a.IsRegion() {
			s.values[i] = a.Bits
			continue
		}
		m, err := s.local("an argument", a.Region)
		if err != nil {
			return err
		}
		s.values[i] = m.address + uint64(a.Region.Offset)
	}
	if g.SharedBytes > f.shared {
		if err := d.check(C.aibox_shared(d.ctx, f.handle, C.int(g.SharedBytes))); err != nil {
			return err
		}
		f.shared = g.SharedBytes
	}
	at := func(n int) C.uint32_t { return C.uint32_t(max(n, 1)) }
	shape := [7]C.uint32_t{at(g.Grid.X), at(g.Grid.Y), at(g.Grid.Z), at(g.Block.X), at(g.Block.Y), at(g.Block.Z), C.uint32_t(g.SharedBytes)}
	values := s.values[:len(args)]
	if s.capture != nil {
		s.capture.addLaunch(f, shape, slices.Clone(values), slices.Clone(args))
		return nil
	}
	return s.lane.launch(f, shape, values)
}

// addLaunch adds a launch to the graph.
func (g *graph) addLaunch(f *function, shape [7]C.uint32_t, values []uint64, args []gpu.Arg) {
	g.add(fmt.Sprintf("kernel %q", f.name), args, func(l *lane) error { return l.launch(f, shape, values) })
}

func (l *lane) launch(f *function, shape [7]C.uint32_t, values []uint64) error {
	d := f.dev
	return d.check(C.aibox_launch(d.ctx, l.handle, f.handle, &shape[0], (*C.uint64_t)(unsafe.SliceData(values)), C.int(len(values))))
}
