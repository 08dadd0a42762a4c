package process

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// slack is more than by how much figures of memory may be off that the system reads at
// different times: it sums counters of several processors.
const slack = 8 << 20

// TestMemory: the resident set follows what the process takes, and is never more than its
// peak.
func TestMemory(t *testing.T) {
	debug.FreeOSMemory() // so that nothing of what was used before goes back to the system meanwhile
	before, err := ReadMemory()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 256<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	after, err := ReadMemory()
	if err != nil || before.Now <= 0 || before.Now > before.Peak+slack || after.Now > after.Peak+slack || after.Now < before.Now+128<<20 {
		t.Errorf("%+v, and %+v after 256 MiB more were used: %v", before, after, err)
	}
	runtime.KeepAlive(block)
}

// TestProcessorTime works until the system has counted some time.
func TestProcessorTime(t *testing.T) {
	before, err := ProcessorTime()
	for now := before; err == nil && now < before+20*time.Millisecond; {
		now, err = ProcessorTime()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAddressSpaceLimit(t *testing.T) {
	if os.Getenv("AIBOX_TEST_LIMITED") != "" {
		if limit := AddressSpaceLimit(); limit != 1<<62 {
			t.Errorf("a limit of %d", limit)
		}
		return
	}
	limited := exec.Command("sh", "-c", `ulimit -v 4503599627370496 && exec "$0" -test.run '^TestAddressSpaceLimit$'`, os.Args[0])
	limited.Env = append(os.Environ(), "AIBOX_TEST_LIMITED=1")
	if out, err := limited.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
