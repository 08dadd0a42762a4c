package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// TestStream checks that a snapshot that is written as a stream can be read back, and that any
// changed or missing byte is detected.
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
		err = pin.Write(&b, pin.Snapshot(), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	read := func(data []byte) (string, error) {
		s, err := ReadNewer(nil, "it", bytes.NewReader(data))
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
	if have, err := read(asOldStream(t, b.Bytes())); err != nil || have != good {
		t.Errorf("as earlier versions wrote it, it is read as %s, want %s; %v", have, good, err)
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

// asOldStream returns a stream as earlier versions wrote it.
func asOldStream(t *testing.T, data []byte) []byte {
	t.Helper()
	s, err := ReadNewer(nil, "it", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte(streamMagicOld), data[len(streamMagic):s.off-8]...)
	if err := s.Pages(func(_ uint32, page []byte) error {
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(page)+1)), page...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	out = binary.LittleEndian.AppendUint32(out, 0)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

// TestStreams reads a snapshot from a stream with all pages of an earlier one and streams with the
// changes after that. The result must be the same as from one stream with all pages. Any changed
// byte, and any stream that is missing or belongs elsewhere, must be detected.
func TestStreams(t *testing.T) {
	rng := testseed.Rand(t)
	c, err := Open(Options{Dir: t.TempDir(), Format: testFormat})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	var ids []uint64 // of snapshots of which there are streams
	var streams [][]byte
	have := 0 // pages
	for round := range rounds {
		w, err := c.Begin()
		if err != nil {
			t.Fatal(err)
		}
		pages := 1 + rng.IntN(8)
		for page := range pages {
			if page >= have || rng.IntN(3) == 0 {
				if err := w.PutPage(uint32(page), fmt.Appendf(nil, "page %d of round %d", page, round)); err != nil {
					t.Fatal(err)
				}
			}
		}
		have = pages
		if err := w.Commit(Snapshot{Slots: uint32(pages*testFormat.PageSlots - rng.IntN(testFormat.PageSlots))}); err != nil {
			t.Fatal(err)
		}
		switch rng.IntN(4) {
		case 0:
			ids, streams = nil, nil
		case 1:
			continue // nobody writes this one
		}
		since := uint64(0)
		if len(ids) > 0 {
			since = ids[len(ids)-1]
		}
		ids, streams = append(ids, w.ID()), append(streams, writeStream(t, c, w.ID(), since))
		want, err := readStreams(writeStream(t, c, w.ID(), 0))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readStreams(streams...)
		if err != nil || got != want {
			t.Fatalf("snapshot %d from %d streams: %s, want %s; %v", w.ID(), len(streams), got, want, err)
		}
		var damaged *CorruptionError
		for i, data := range streams {
			others := slices.Clone(streams)
			others[i] = bytes.Clone(data)
			for range 20 {
				at := rng.IntN(len(data))
				others[i][at] ^= 1
				if _, err := readStreams(others...); !errors.As(err, &damaged) {
					t.Errorf("byte %d of stream %d is changed: %v", at, i, err)
				}
				others[i][at] ^= 1
			}
			if i+1 < len(streams) { // without the last one there is an earlier snapshot
				if _, err := readStreams(slices.Delete(slices.Clone(streams), i, i+1)...); !errors.As(err, &damaged) {
					t.Errorf("stream %d of %d is missing: %v", i, len(streams), err)
				}
			}
		}
	}
}

func writeStream(t *testing.T, c *Catalog, id, since uint64) []byte {
	t.Helper()
	pin, err := c.Pin(id)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	var b bytes.Buffer
	if err := pin.Write(&b, pin.Snapshot(), since); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readStreams(streams ...[]byte) (string, error) {
	var s *Stream
	for i, data := range streams {
		var err error
		if s, err = ReadNewer(s, fmt.Sprint("stream ", i), bytes.NewReader(data)); err != nil {
			return "", err
		}
	}
	var pages []string
	err := s.Pages(func(page uint32, data []byte) error {
		pages = append(pages, fmt.Sprintf("%d: %s", page, data))
		return nil
	})
	s.Snapshot.PageBytes = 0
	return fmt.Sprint(s.Format, s.Snapshot, pages), err
}
