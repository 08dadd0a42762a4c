package humanize

import (
	"math"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", math.MaxInt64: "8.0 EiB",
		1<<20 - 52: "1023.9 KiB", 1<<20 - 51: "1.0 MiB", 1<<20 - 1: "1.0 MiB", 1<<40 - 1: "1.0 TiB", -1: "-1 B", -1536: "-1.5 KiB", math.MinInt64: "-8.0 EiB"} {
		if have := Bytes(n); have != want {
			t.Errorf("%d: %s, want %s", n, have, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{0: "0.0%", 0.004: "0.40%", 0.5: "50.0%", 1: "100.0%"} {
		if have := Percent(x); have != want {
			t.Errorf("%v: %s, want %s", x, have, want)
		}
	}
	if have := Percent(math.NaN()); have != "-" {
		t.Errorf("undefined: %s", have)
	}
	if a, b := PercentOf(1, 8), PercentOf(0, 0); a != "12.5%" || b != "0.0%" {
		t.Errorf("1 of 8: %s; 0 of 0: %s", a, b)
	}
}

func TestCountAndSeconds(t *testing.T) {
	if a, b := Count(1, "row"), Count(2, "row"); a != "1 row" || b != "2 rows" {
		t.Errorf("%s, %s", a, b)
	}
	if have := Seconds(61*time.Second + 400*time.Millisecond); have != "1m1s" {
		t.Errorf("61.4 s: %s", have)
	}
}
