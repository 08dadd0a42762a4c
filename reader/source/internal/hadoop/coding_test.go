package hadoop

import (
	"bytes"
	"testing"
)

// TestCodingPlaces compares where bytes are with a file that is dealt out cell by cell.
func TestCodingPlaces(t *testing.T) {
	for _, c := range []*coding{{"xor", 2, 1, 1}, {"rs", 3, 2, 4}, {"rs", 6, 3, 5}} {
		for length := int64(1); length < 100; length++ {
			b := &block{start: 1000, length: length}
			units := make([]int64, c.data)
			for offset := range length {
				unit := int(offset / c.cell % int64(c.data))
				left := min(c.cell-offset%c.cell, length-offset)
				if u, at, l := c.place(b, 1000+offset); u != unit || at != units[unit] || l != left {
					t.Fatalf("%+v, byte %d of %d: block %d, byte %d, %d left; want %d, %d, %d", c, offset, length, u, at, l, unit, units[unit], left)
				}
				units[unit]++
			}
			for u := range c.data + c.parity {
				want := units[0]
				if u < c.data {
					want = units[u]
				}
				if got := c.length(length, u); got != want {
					t.Fatalf("%+v, %d bytes: block %d has %d, want %d", c, length, u, got, want)
				}
			}
		}
	}
}

// TestDecoders checks that each codec reconstructs lost cells. Whether its parity is that of Hadoop
// is tested with a cluster.
func TestDecoders(t *testing.T) {
	for id, c := range codings {
		code, err := c.decoder()
		if err != nil {
			t.Fatal(id, err)
		}
		shards := make([][]byte, c.data+c.parity)
		for i := range shards {
			shards[i] = make([]byte, 100)
			if i < c.data {
				copy(shards[i], logText(100)[100*i:])
			}
		}
		if err := code.Encode(shards); err != nil {
			t.Fatal(id, err)
		}
		whole := bytes.Join(shards, nil)
		for i := range c.parity {
			shards[i] = nil
		}
		if err := code.Reconstruct(shards); err != nil || !bytes.Equal(bytes.Join(shards, nil), whole) {
			t.Errorf("%d: %v", id, err)
		}
	}
	for _, c := range []coding{{"rs", 0, 1, 1}, {"rs-legacy", 3, 0, 1}, {"xor", 2, 2, 1}, {"dummy", 2, 1, 1}, {"rs", 200, 100, 1}} {
		if _, err := c.decoder(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
