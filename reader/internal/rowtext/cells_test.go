package rowtext

import (
	"bytes"
	"testing"

	"aibox/internal/testseed"
)

// TestCut checks that lines are split as bytes.SplitN does it, whatever bytes they contain, except
// that the rest beyond the last cell is left out.
func TestCut(t *testing.T) {
	rng := testseed.Rand(t)
	for range 20_000 {
		delimiter := []byte{'\t', ',', 0, 1, 0x7f, 0x80, 0xff}[rng.IntN(7)]
		line := make([]byte, rng.IntN(60))
		for i := range line {
			line[i] = []byte{delimiter, delimiter ^ 1, delimiter ^ 0x80, delimiter - 1, delimiter + 1, byte(rng.IntN(256))}[rng.IntN(6)]
		}
		limit := 1 + rng.IntN(12)
		want := bytes.Split(line, []byte{delimiter})
		if len(want) > limit {
			want = want[:limit]
		}
		got := cut(nil, line, delimiter, limit)
		if len(got) != len(want) {
			t.Fatalf("%q at %q with limit %d: %d cells, want %d", line, delimiter, limit, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%q at %q with limit %d: cell %d is %q, want %q", line, delimiter, limit, i, got[i], want[i])
			}
		}
	}
}
