package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"aibox/internal/errkind"
)

// newer fails the test unless err says that a newer version of the program has written something,
// and does not say that it is damaged.
func newer(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, errkind.ErrNewer) || errors.As(err, new(*CorruptionError)) {
		t.Errorf("%s: %v", what, err)
	}
}

// newerRecord returns a snapshot's record as a newer version of the program might write it.
func newerRecord(s *kept) []byte {
	b := encodeSnapshot(s)
	b[0] = recordVersion + 1
	b = append(b[:len(b)-4], "what only that one knows"...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// TestNewer checks that what a newer version of the program has written is refused with an error
// that says so, and that the files are not changed.
func TestNewer(t *testing.T) {
	for what, value := range map[string]func(c *Catalog) (key, value []byte){
		"format": func(c *Catalog) ([]byte, []byte) {
			f := c.format
			f.Version = formatVersion + 1
			b, err := f.encode()
			if err != nil {
				t.Fatal(err)
			}
			return []byte{'a'}, b
		},
		"record": func(c *Catalog) ([]byte, []byte) {
			s := c.mu.snapshots[0]
			return binary.BigEndian.AppendUint64([]byte{'s'}, s.ID), newerRecord(s)
		},
	} {
		fs, _ := trainedCatalog(t, 3)
		c, err := Open(Options{Dir: "cat", Format: testFormat, FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		table, err := c.newTable("newer")
		if err == nil {
			err = table.set(value(c))
		}
		if err == nil {
			err = table.ingest(c.mu.db)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} {
			newer(t, what, openAndLoad(fs, readOnly))
		}
	}
}

// TestNewerStream checks the same for a snapshot that is transported to another machine.
func TestNewerStream(t *testing.T) {
	format, err := testFormat.encode()
	if err != nil {
		t.Fatal(err)
	}
	b := []byte(streamMagic)
	for _, part := range [][]byte{format, newerRecord(&kept{Snapshot: Snapshot{ID: 1}})} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	_, err = ReadNewer(nil, "it", bytes.NewReader(b))
	newer(t, "stream", err)
}
