package shim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testtools"
)

// Images returns the kernels for emulated.Options, until the test ends. Where g++ is not installed the
// test is skipped, unless AIBOX_REQUIRE_INTEGRATION is 1.
func Images(t testing.TB) map[string]emulated.Kernels {
	t.Helper()
	program, err := build(t.TempDir())
	if errors.Is(err, errNoCompiler) {
		testtools.Unavailable(t, "", "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := start(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the program that runs kernels: %v", err)
		}
	})
	all := emulated.Kernels{}
	for name, k := range twin.Kernels {
		all[name] = emulated.Kernel{Params: k.Params, Run: func(b *emulated.Block) {
			if err := h.run(name, k.Params, b); err != nil {
				panic(fmt.Errorf("shim: kernel %q: %w", name, err))
			}
		}}
	}
	return map[string]emulated.Kernels{kernels.Image().Name: all}
}

// host is a process that runs kernels: see host.h.
type host struct {
	in      io.WriteCloser
	out     *bufio.Reader
	process *exec.Cmd
	blocks  uint32
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

// run computes a block: it sends the bytes of all regions, and gets them back. The order in which threads
// take turns alternates from block to block.
func (h *host) run(name string, params []gpu.ArgKind, b *emulated.Block) error {
	h.blocks++
	h.request = h.request[:0]
	types := make([]byte, len(params))
	for i, p := range params {
		types[i] = " rwwilf"[p]
	}
	h.text(name)
	h.text(string(types))
	for _, d := range []gpu.Dim{b.Grid, b.Geometry.Block} {
		h.numbers(uint32(max(d.X, 1)), uint32(max(d.Y, 1)), uint32(max(d.Z, 1)))
	}
	h.numbers(uint32(b.Index.X), uint32(b.Index.Y), uint32(b.Index.Z), uint32(b.SharedBytes), h.blocks%2)
	for i, p := range params {
		switch p {
		case gpu.Int32Arg:
			h.long(uint64(b.Int32(i)))
		case gpu.Int64Arg:
			h.long(uint64(b.Int64(i)))
		case gpu.Float32Arg:
			h.long(uint64(math.Float32bits(b.Float32(i))))
		default:
			region := emulated.Slice[byte](b, i)
			h.long(uint64(len(region)))
			h.numbers(uint32(b.Offset(i) % 16))
			h.request = append(h.request, region...)
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

func (h *host) numbers(values ...uint32) {
	for _, v := range values {
		h.request = binary.LittleEndian.AppendUint32(h.request, v)
	}
}

func (h *host) long(v uint64) { h.request = binary.LittleEndian.AppendUint64(h.request, v) }

func (h *host) text(s string) {
	h.numbers(uint32(len(s)))
	h.request = append(h.request, s...)
}
