package parquetcolumn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"aibox/reader/source"
)

// halfDisk fails to read its second half.
type halfDisk struct{ size int64 }

func (d halfDisk) ReadAt(p []byte, offset int64) (int, error) {
	switch end := offset + int64(len(p)); {
	case end <= d.size/2:
		return len(p), nil
	case end > d.size:
		return int(max(d.size-offset, 0)), io.EOF
	}
	return 0, errDisk
}

func (halfDisk) Close() error { return nil }

var errDisk = errors.New("the disk is broken")

// TestFailedReadsAreNotDamage checks that a failed read is reported as such, whatever error the
// library makes of it.
func TestFailedReadsAreNotDamage(t *testing.T) {
	f := &File{at: &fileSource{ReaderAtCloser: halfDisk{100}, size: 100}}
	for _, c := range []struct {
		offset int64
		length int
		want   error
	}{{0, 50, nil}, {-5, 10, nil}, {101, 10, nil}, {95, 10, nil}, {60, 10, errDisk}, {0, 10, errDisk}} {
		if _, err := f.at.ReadAt(make([]byte, c.length), c.offset); f.Failure() != c.want {
			t.Errorf("after %d bytes from %d (%v) the failure is %v, want %v", c.length, c.offset, err, f.Failure(), c.want)
		}
	}
}

// TestFooterContradictsItself checks that a footer that states two different numbers of rows, or
// refers to something that does not exist, counts as damaged. Otherwise rows would be missing
// silently.
func TestFooterContradictsItself(t *testing.T) {
	path := writeFile(t, 100)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*format.FileMetaData){
		"have 96 rows, but the file 100": func(m *format.FileMetaData) { m.RowGroups[0].NumRows = 96 },
		"have 0 rows, but the file 100":  func(m *format.FileMetaData) { m.RowGroups = nil },
		"negative":                       func(m *format.FileMetaData) { m.RowGroups[0].NumRows = -1 },
		"invalid repetition type": func(m *format.FileMetaData) {
			unknown := format.FieldRepetitionType(-15)
			m.Schema[1].RepetitionType = &unknown
		},
	} {
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		change(f.Metadata())
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), f.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		body := data[:len(data)-8-int(binary.LittleEndian.Uint32(data[len(data)-8:]))]
		bad := binary.LittleEndian.AppendUint32(append(bytes.Clone(body), footer...), uint32(len(footer)))
		bad = append(bad, magic...)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		open, err := Open(t.Context(), source.New(source.Options{}), source.File{URI: path, Size: int64(len(bad))})
		if err == nil {
			_, err = open.Groups()
			if closed := open.Close(); closed != nil {
				t.Error(closed)
			}
		}
		var fault *Fault
		if !errors.As(err, &fault) || !fault.Damaged || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want damage with %q", err, want)
		}
	}
}
