//go:build nvidia && linux && amd64

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
)

// TestFake runs all other tests on testdata/fakedriver.c. That shows whether
// this package calls the driver as its documentation says; what a device does with the calls is
// shown on a device only.
func TestFake(t *testing.T) {
	if os.Getenv("FAKE_DEVICES") != "" {
		return
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("testdata/fakedriver.c"); err != nil {
		t.Skip(err) // on another machine
	}
	dir := t.TempDir()
	driver := filepath.Join(dir, "libcuda.so.1")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I/usr/local/cuda/include", "-o", driver, "testdata/fakedriver.c", "-lm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"libcublas.so.12", "libcublasLt.so.12", "libnccl.so.2"} {
		if err := os.Symlink(driver, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, devices := range []string{"1", "2", "4"} {
		t.Run(devices, func(t *testing.T) {
			run := func(tests string, env ...string) string {
				c := exec.Command(os.Args[0], tests, "-test.v", "-test.timeout=2m")
				c.Env = append(append(os.Environ(), "FAKE_DEVICES="+devices, "LD_LIBRARY_PATH="+dir), env...)
				out, err := c.CombinedOutput()
				if err != nil || strings.Contains(string(out), "--- SKIP") {
					t.Fatalf("%v\n%s", err, out)
				}
				return string(out)
			}
			// A device that breaks because another one does is in order for the driver.
			run("-test.run=^TestGroupBreaks$", "FAKE_LEAKS=1")
			for _, breaks := range []string{"^TestConformance$/^Broken$", "^TestGroupBreaks$"} {
				run("-test.run="+breaks, "FAKE_STICKY=1")
			}
			for _, refusal := range []string{"FAKE_MODE=2", "FAKE_MODE=3", "FAKE_INIT=100", "FAKE_INIT=803", "FAKE_OPEN=102", "FAKE_OPEN=220", "FAKE_OPEN=226", "FAKE_OPEN=719"} {
				run("-test.run=^TestRefused$", refusal)
			}
			for _, lt := range []string{"old", "none", "nothing", "greedy", "fails"} {
				run("-test.run=^TestFusesNot$", "FAKE_LT="+lt)
			}
			run("-test.run=^TestNumbers$", "CUDA_DEVICE_ORDER=FASTEST_FIRST")
			for _, link := range []string{"PCIe", "host", "one way"} {
				if devices == "2" {
					run("-test.run=^(TestLinks|TestConformance)$", "FAKE_LINK="+link)
				}
			}
			text := run("-test.skip=^(TestFake|TestGroupBreaks|TestRefused)$")
			withProfiler(t, compiler, dir, run)
			inCUDAHome(t, compiler, dir, run)
			if !strings.Contains(text, "fake device 0") {
				t.Errorf("this is not the fake driver:\n%s", text)
			}
			if got := strings.Contains(text, "NCCL sums up"); got != (devices != "1") {
				t.Errorf("with %s devices NCCL was used: %v\n%s", devices, got, text)
			}
		})
	}
}

// inCUDAHome runs a test with cuBLAS in a folder that the system does not know. As some of
// NVIDIA's, this one needs another library, and does not look into its own folder for it.
func inCUDAHome(t *testing.T, compiler, dir string, run func(tests string, env ...string) string) {
	t.Helper()
	home, bare := t.TempDir(), t.TempDir()
	lib := filepath.Join(home, "lib64")
	if err := errors.Join(os.Mkdir(lib, 0o755), os.Symlink(filepath.Join(dir, "libcuda.so.1"), filepath.Join(bare, "libcuda.so.1")),
		os.WriteFile(filepath.Join(home, "empty.c"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-Wl,-soname,libcublasLt.so.12", "-o", filepath.Join(lib, "libcublasLt.so.12")},
		{"-Wl,--no-as-needed", "-o", filepath.Join(lib, "libcublas.so.12"), filepath.Join(lib, "libcublasLt.so.12"), filepath.Join(dir, "libcuda.so.1")},
	} {
		build := exec.Command(compiler, append([]string{"-shared", "-fPIC", filepath.Join(home, "empty.c")}, args...)...)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run("-test.run=^TestRows$", "CUDA_HOME="+home, "LD_LIBRARY_PATH="+bare)
	run("-test.run=^TestFusesNot$", "CUDA_HOME="+home, "LD_LIBRARY_PATH="+bare, "FAKE_LT=without functions")
	// And one that lacks cuBLASLt.
	if err := os.Symlink(filepath.Join(dir, "libcuda.so.1"), filepath.Join(bare, "libcublas.so.12")); err != nil {
		t.Fatal(err)
	}
	run("-test.run=^TestFusesNot$", "LD_LIBRARY_PATH="+bare, "FAKE_LT=missing")
}

// TestNumbers: devices have the numbers that nvidia-smi gives them, unless the environment asks for others.
func TestNumbers(t *testing.T) {
	p, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	if os.Getenv("FAKE_DEVICES") == "" {
		return
	}
	list := p.Devices()
	for i, d := range list {
		at := i // on the bus
		if os.Getenv("CUDA_DEVICE_ORDER") == "FASTEST_FIRST" {
			at = len(list) - 1 - i
		}
		if want := fmt.Sprint("fake device ", at); d.Name != want {
			t.Errorf("device %d is %q, want %q", i, d.Name, want)
		}
	}
}

// TestLinks: what links two devices, both ways, is the slower of what links each with the other.
func TestLinks(t *testing.T) {
	p, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	if n := len(p.Devices()); n < 2 || os.Getenv("FAKE_DEVICES") == "" {
		return
	}
	want := map[string]gpu.Link{"": gpu.LinkNVLink, "PCIe": gpu.LinkPCIe, "host": gpu.LinkHost, "one way": gpu.LinkHost}[os.Getenv("FAKE_LINK")]
	if got := []gpu.Link{p.Link(0, 1), p.Link(1, 0), p.Link(1, 1)}; !slices.Equal(got, []gpu.Link{want, want, gpu.LinkSame}) {
		t.Errorf("links are %v, want %v", got, want)
	}
	if text := strings.Join(cuda.Describe(), "\n"); !strings.Contains(text, "to 1: "+want.String()) {
		t.Errorf("Describe does not say that devices are linked by %v:\n%s", want, text)
	}
}

// TestRefused: the error says why a device, or the driver, that is there cannot be used.
func TestRefused(t *testing.T) {
	refusal := ""
	for _, name := range []string{"FAKE_INIT", "FAKE_MODE", "FAKE_OPEN"} {
		if value := os.Getenv(name); value != "" {
			refusal = name + "=" + value
		}
	}
	want, ok := map[string]struct {
		kind gpu.Kind
		says string
	}{
		"FAKE_INIT=100": {gpu.WrongDriver, "the driver finds no device; nvidia-smi lists all devices, and CUDA_VISIBLE_DEVICES"},
		"FAKE_INIT=803": {gpu.WrongDriver, "the driver cannot be initialized: "},
		"FAKE_MODE=2":   {gpu.InUse, "compute mode is prohibited"},
		"FAKE_MODE=3":   {gpu.InUse, "compute mode allows one process at a time"},
		"FAKE_OPEN=102": {gpu.WrongDriver, "CUDA_ERROR (102, "},
		"FAKE_OPEN=220": {gpu.DeviceLost, "CUDA_ERROR (220, "},
		"FAKE_OPEN=226": {gpu.DeviceLost, "CUDA_ERROR (226, "},
		"FAKE_OPEN=719": {gpu.LaunchFailed, "CUDA_ERROR (719, "}, // of another device of this process
	}[refusal]
	if !ok {
		return
	}
	p, err := cuda.Open()
	if err == nil {
		_, err = p.Open(0)
	}
	if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
		t.Errorf("%v, want %v: %s", err, want.kind, want.says)
	}
}
