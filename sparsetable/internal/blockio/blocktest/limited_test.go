package blocktest_test

import (
	"testing"
	"time"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

// TestLimited checks that reads return the bytes of the file, and no faster than the limit.
func TestLimited(t *testing.T) {
	const reads, rate = 200, 4000
	d := blocktest.NewLimited(blocktest.New(blocktest.Options{}), rate)
	pool := blockio.NewPool(512, 0)
	f, err := d.Create("data")
	if err != nil {
		t.Fatal(err)
	}
	buf, err := pool.Get(4 * 512)
	if err != nil {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] = byte(1 + i/512)
	}
	if _, err := f.WriteAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	var c blockio.Completions
	start := time.Now()
	for i := range reads {
		b, err := pool.Get(512)
		if err != nil {
			t.Fatal(err)
		}
		r := &blockio.Read{File: f, Offset: int64(i % 5 * 512), Buf: b}
		d.Submit(&c, []*blockio.Read{r})
	}
	failed := 0
	for c.Pending() > 0 {
		for _, r := range c.Wait(nil, 1) {
			if r.Offset == 4*512 {
				if r.Err != nil {
					failed++ // beyond the end
				}
			} else if r.Err != nil || r.Buf[0] != byte(1+r.Offset/512) || r.Buf[511] != r.Buf[0] {
				t.Fatalf("%v, %d at %d", r.Err, r.Buf[0], r.Offset)
			}
		}
	}
	if took, least := time.Since(start), (reads-1)*time.Second/rate; took < least {
		t.Errorf("%d reads in %v, want at least %v", reads, took, least)
	}
	if failed != reads/5 {
		t.Errorf("%d reads beyond the end fail, want %d", failed, reads/5)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
