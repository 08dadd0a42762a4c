package splitmix

import "testing"

// The numbers after 0, as other implementations have them.
func TestNumbers(t *testing.T) {
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := Next(uint64(i) * Step); got != want {
			t.Errorf("number %d is %x, want %x", i+1, got, want)
		}
	}
}
