package schema

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Bytes
	}{
		{"0", 0}, {"4096", 4096}, {"8GiB", 8 * gib}, {"512MiB", 512 * mib}, {"64k", 64 * kib}, {"64 KiB", 64 * kib},
		{"1.5GiB", 3 * gib / 2}, {"2TB", 2e12}, {"1_000", 1000}, {"3m", 3 * mib}, {"10b", 10}, {"-1", -1}, {"0.0GiB", 0}, {"0.0", 0},
		{"9007199254740993", 9007199254740993},
	} {
		if have, err := ParseBytes(c.text); err != nil || have != c.want {
			t.Errorf("%s: %d, %v; want %d", c.text, have, err, c.want)
		}
	}
	for _, text := range []string{"", "GiB", "8 GiBs", "1e3", "0x10", "9000000TiB", "9223372036854775808", "NaN", "8GiB8", "--1", "infGiB", "0.5", "-0.9b"} {
		if have, err := ParseBytes(text); err == nil {
			t.Errorf("%q was read as %d", text, have)
		}
	}
}

func TestBytesPrintsWhatItReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(-1<<40, 1<<62).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "round") {
			b &^= gib - 1
		}
		if have, err := ParseBytes(b.String()); err != nil || have != b {
			t.Errorf("%d printed as %s, read as %d, %v", b, b, have, err)
		}
	})
}
