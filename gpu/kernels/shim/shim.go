package shim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testtools"
)

// Images returns the kernels for emulated.Options, valid until the test ends. If g++ is not
// installed, the test is skipped, or fails if AIBOX_REQUIRE_INTEGRATION is 1.
func Images(t testing.TB) map[string]emulated.Kernels {
	t.Helper()
	params := map[string][]gpu.ArgKind{}
	for name, k := range twin.Kernels {
		params[name] = k.Params
	}
	return map[string]emulated.Kernels{kernels.Image().Name: compiled(t, "*.cu", params)}
}

// compiled returns the kernels with these parameters of sources in the directory of package kernels.
func compiled(t testing.TB, pattern string, params map[string][]gpu.ArgKind) emulated.Kernels {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		testtools.Unavailable(t, "", "g++ is not installed")
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	module, err := testtools.ModuleDir()
	must(err)
	from := filepath.Join(module, "gpu", "kernels")
	sources, err := filepath.Glob(filepath.Join(from, pattern))
	must(err)
	program, err := build(compiler, filepath.Join(from, "shim", "host"), sources, slices.Sorted(maps.Keys(params)), t.TempDir())
	must(err)
	h, err := start(program)
	must(err)
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the program that runs kernels: %v", err)
		}
	})
	all := emulated.Kernels{}
	for name, kinds := range params {
		all[name] = emulated.Kernel{Params: kinds, Run: func(b *emulated.Block) {
			if err := h.run(name, kinds, b); err != nil {
				panic(fmt.Errorf("shim: kernel %q: %w", name, err))
			}
		}}
	}
	return all
}

// host is a process that runs kernels: see host.cc.
type host struct {
	in      io.WriteCloser
	out     *bufio.Reader
	process *exec.Cmd
	order   []gpu.Dim // in which the blocks of a launch run
	request []byte
}

func start(program string) (*host, error) {
	h := &host{process: exec.Command(program)}
	h.process.Stderr = os.Stderr
	var err error
	if h.in, err = h.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReaderSize(out, 1<<16)
	return h, h.process.Start()
}

// stop ends the process, which ends with its input.
func (h *host) stop() error {
	return errors.Join(h.in.Close(), h.process.Wait())
}

// run computes a block. The work is deferred to the last block of a launch: then the bytes of all
// regions are sent to the process, with the order in which blocks run, and received back.
func (h *host) run(name string, params []gpu.ArgKind, b *emulated.Block) error {
	h.order = append(h.order, b.Index)
	if len(h.order) < b.Grid.Count() {
		return nil
	}
	h.request = h.request[:0]
	types := make([]byte, len(params))
	for i, p := range params {
		types[i] = " rwuilf"[p]
	}
	h.text(name)
	h.text(string(types))
	for _, d := range []gpu.Dim{b.Grid, b.Geometry.Block} {
		h.numbers(max(d.X, 1), max(d.Y, 1), max(d.Z, 1))
	}
	h.numbers(b.SharedBytes, len(h.order))
	for _, d := range h.order {
		h.numbers(d.X, d.Y, d.Z)
	}
	h.order = h.order[:0]
	for i, p := range params {
		switch p {
		case gpu.Int32Arg:
			h.long(uint64(b.Int32(i)))
		case gpu.Int64Arg:
			h.long(uint64(b.Int64(i)))
		case gpu.Float32Arg:
			h.long(uint64(math.Float32bits(b.Float32(i))))
		default:
			r, bytes := b.Region(i), emulated.Slice[byte](b, i)
			h.long(uint64(len(bytes)))
			h.numbers(r.Width, r.Rows, r.Pitch, r.Offset%16)
			h.request = append(h.request, bytes...)
		}
	}
	if _, err := h.in.Write(h.request); err != nil {
		return fmt.Errorf("the program that runs kernels has ended: %w", err)
	}
	var n uint32
	if err := binary.Read(h.out, binary.LittleEndian, &n); err != nil {
		return fmt.Errorf("the program that runs kernels has ended: %w", err)
	}
	fault := make([]byte, n)
	if _, err := io.ReadFull(h.out, fault); err != nil {
		return err
	}
	if n > 0 {
		return errors.New(string(fault))
	}
	for i, p := range params {
		if p <= gpu.UpdateArg {
			if _, err := io.ReadFull(h.out, emulated.Slice[byte](b, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *host) numbers(values ...int) {
	for _, v := range values {
		h.request = binary.LittleEndian.AppendUint32(h.request, uint32(v))
	}
}

func (h *host) long(v uint64) { h.request = binary.LittleEndian.AppendUint64(h.request, v) }

func (h *host) text(s string) {
	h.numbers(len(s))
	h.request = append(h.request, s...)
}
