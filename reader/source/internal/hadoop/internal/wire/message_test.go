package wire

import (
	"bufio"
	"bytes"
	"errors"
	"testing"
)

// TestDelimited checks that messages are read as they were written, and that truncated and too
// large ones are refused.
func TestDelimited(t *testing.T) {
	m := New("BlockOpResponseProto").SetEnum("status", "ERROR_ACCESS_TOKEN").Set("message", "why")
	m.Make("readOpChecksumInfo").Set("chunkOffset", uint64(7)).Make("checksum").SetEnum("type", "CHECKSUM_CRC32C").Set("bytesPerChecksum", uint32(512))
	data, err := AppendDelimited([]byte("before"), m)
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) (Message, error) {
		m := New("BlockOpResponseProto")
		return m, ReadDelimited(bufio.NewReader(bytes.NewReader(data)), m)
	}
	data = data[len("before"):]
	got, err := read(data)
	info := got.In("readOpChecksumInfo")
	if err != nil || got.Enum("status") != "ERROR_ACCESS_TOKEN" || got.Text("message") != "why" || !got.Has("readOpChecksumInfo") || info.Int("chunkOffset") != 7 ||
		info.In("checksum").Enum("type") != "CHECKSUM_CRC32C" || info.In("checksum").Int("bytesPerChecksum") != 512 {
		t.Errorf("%v, %v", got, err)
	}
	for n := range data {
		if _, err := read(data[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a message", n, len(data))
		}
	}
	if _, err := read(bytes.Repeat([]byte{0xff}, 20)); err == nil {
		t.Error("a message of very many bytes is read")
	}
	if _, err := Find("NoSuchProto"); !errors.Is(err, ErrLibraryChanged) {
		t.Errorf("%v", err)
	}
}
