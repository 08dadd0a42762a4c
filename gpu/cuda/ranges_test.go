//go:build nvidia && linux && amd64

package cuda_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aibox/gpu"
)

// TestRanges: a profiler gets the ranges with their names. Without one they are nothing.
func TestRanges(t *testing.T) {
	r := gpu.RangerOf(openPlatform(t))
	outer, inner := r.StartRange("outer"), r.StartRange(strings.Repeat("long", 20))
	r.EndRange(inner)
	r.EndRange(r.StartRange(""))
	r.EndRange(outer)
	if garbage := testing.AllocsPerRun(100, func() { r.EndRange(r.StartRange("step")) }); garbage > 0 {
		t.Errorf("%v allocations", garbage)
	}
}

// withProfiler runs TestRanges with a profiler.
func withProfiler(t *testing.T, compiler, dir string, run func(tests string, env ...string) string) {
	t.Helper()
	library, file := filepath.Join(dir, "profiler.so"), filepath.Join(dir, "ranges")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-I/usr/local/cuda/include", "-o", library, "testdata/fakeprofiler.c", "-ldl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run("-test.run=^TestRanges$", "NVTX_INJECTION64_PATH="+library, "FAKE_PROFILE="+file)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "domain aibox\nstart outer\nstart " + strings.Repeat("long", 20)[:63] + "\nend 2\nstart \nend 3\nend 1\nstart step\nend 4\n"
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("the profiler has %q, want %q", got[:min(len(got), len(want))], want)
	}
}
