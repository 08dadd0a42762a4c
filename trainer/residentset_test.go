package trainer

import (
	"runtime"
	"testing"
)

// TestResidentBytes: the display's figure of memory follows what the process takes now,
// and is never more than its peak.
func TestResidentBytes(t *testing.T) {
	before := new(Status).View().ResidentBytes
	if before <= 0 || before > peakMemoryBytes() {
		t.Fatalf("the resident set has %d bytes, at most %d so far", before, peakMemoryBytes())
	}
	block := make([]byte, 256<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	if after := new(Status).View().ResidentBytes; after < before+128<<20 {
		t.Errorf("the resident set has %d bytes, and %d after 256 MiB more were used", before, after)
	}
	runtime.KeepAlive(block)
}
