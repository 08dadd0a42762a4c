package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestStream: a snapshot that is written as a stream is read back; and no byte of it can
// change, or be missing, unnoticed.
func TestStream(t *testing.T) {
	c, err := Open(Options{Dir: t.TempDir(), Format: testFormat})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := c.Begin()
	if err != nil {
		t.Fatal(err)
	}
	slots := uint32(3 * testFormat.PageSlots)
	for page := range uint32(3) {
		if err := w.PutPage(page, bytes.Repeat([]byte{byte(page + 1)}, int(page)*100)); err != nil { // the first is empty
			t.Fatal(err)
		}
	}
	want := Snapshot{
		Slots: slots, Rows: 7, Files: []File{{ID: 3, Bytes: 4096, LiveBytes: 1000, Incarnation: 99}},
		Deltas: []Delta{{Name: "d", Bytes: 12, Rows: 2}}, Counters: map[string]int64{"x": 5}, Record: []byte("record"),
	}
	if err := w.Commit(want); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	pin, err := c.Pin(w.ID())
	if err == nil {
		err = pin.Write(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	read := func(data []byte) (string, error) {
		s, err := ReadSnapshot("it", bytes.NewReader(data))
		if err != nil {
			return "", err
		}
		var pages []string
		err = s.Pages(func(page uint32, data []byte) error {
			pages = append(pages, fmt.Sprint(page, data))
			return nil
		})
		s.Snapshot.PageBytes = 0
		return fmt.Sprint(s.Format, s.Snapshot, pages), err
	}
	good, err := read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want.ID = w.ID()
	var pages []string
	for page := range 3 {
		pages = append(pages, fmt.Sprint(page, bytes.Repeat([]byte{byte(page + 1)}, page*100)))
	}
	if have := fmt.Sprint(c.Format(), want, pages); good != have {
		t.Errorf("it is read as %s, want %s", good, have)
	}
	var damaged *CorruptionError
	for i := range b.Len() {
		wrong := bytes.Clone(b.Bytes())
		wrong[i] ^= 1
		if _, err := read(wrong); !errors.As(err, &damaged) {
			t.Errorf("byte %d is changed: %v", i, err)
		}
		if _, err := read(b.Bytes()[:i]); !errors.As(err, &damaged) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
	if _, err := c.Pin(77); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
}
