package metrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// event is a decoded Event message.
type event struct {
	wall    float64
	step    int64
	version string
	scalars []Scalar
}

// unmask is the inverse of the masking of a CRC.
func unmask(m uint32) uint32 {
	r := m - 0xa282ead8
	return r>>17 | r<<15
}

// readEvents decodes a whole event file and checks every CRC. It shares no
// code with the writer.
func readEvents(b []byte) (list []event, err error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for len(b) > 0 {
		if len(b) < 16 {
			return list, io.ErrUnexpectedEOF
		}
		if unmask(binary.LittleEndian.Uint32(b[8:])) != crc32.Checksum(b[:8], table) {
			return list, errors.New("CRC of the length")
		}
		n := binary.LittleEndian.Uint64(b)
		if n > uint64(len(b)-16) {
			return list, io.ErrUnexpectedEOF
		}
		data := b[12 : 12+n]
		if unmask(binary.LittleEndian.Uint32(b[12+n:])) != crc32.Checksum(data, table) {
			return list, errors.New("CRC of the data")
		}
		var e event
		if err := e.decode(data); err != nil {
			return list, err
		}
		list = append(list, e)
		b = b[16+n:]
	}
	return list, nil
}

// fields calls each with every field of a protobuf message: num holds varints
// and fixed numbers, raw the rest.
func fields(b []byte, each func(field int, num uint64, raw []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errors.New("bad tag")
		}
		b = b[n:]
		var num uint64
		var raw []byte
		size := 0
		switch tag & 7 {
		case 0:
			if num, size = binary.Uvarint(b); size <= 0 {
				return errors.New("bad varint")
			}
		case 1:
			if size = 8; len(b) >= 8 {
				num = binary.LittleEndian.Uint64(b)
			}
		case 5:
			if size = 4; len(b) >= 4 {
				num = uint64(binary.LittleEndian.Uint32(b))
			}
		case 2:
			length, k := binary.Uvarint(b)
			if k <= 0 || length > uint64(len(b)-k) {
				return errors.New("bad length")
			}
			raw, size = b[k:k+int(length)], k+int(length)
		default:
			return fmt.Errorf("wire type %d", tag&7)
		}
		if size > len(b) {
			return io.ErrUnexpectedEOF
		}
		if err := each(int(tag>>3), num, raw); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

func (e *event) decode(b []byte) error {
	return fields(b, func(field int, num uint64, raw []byte) error {
		switch field {
		case 1:
			e.wall = math.Float64frombits(num)
		case 2:
			e.step = int64(num)
		case 3:
			e.version = string(raw)
		case 5:
			return fields(raw, func(field int, _ uint64, raw []byte) error {
				if field != 1 {
					return fmt.Errorf("field %d of Summary", field)
				}
				var s Scalar
				defer func() { e.scalars = append(e.scalars, s) }()
				return fields(raw, func(field int, num uint64, raw []byte) error {
					switch field {
					case 1:
						s.Tag = string(raw)
					case 2:
						s.Value = float64(math.Float32frombits(uint32(num)))
					default:
						return fmt.Errorf("field %d of Value", field)
					}
					return nil
				})
			})
		default:
			return fmt.Errorf("field %d of Event", field)
		}
		return nil
	})
}

func TestEventFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tb", "run")
	at := time.Unix(1_700_000_000, 500_000_000)
	w, err := createEvents(dir, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if got, want := filepath.Base(w.Path()), "events.out.tfevents.1700000000."+host; got != want {
		t.Errorf("file is %s, want %s", got, want)
	}
	started := float64(at.UnixNano()) / 1e9
	at = at.Add(time.Second)
	scalars := []Scalar{{"train/auc", 0.75}, {"train/log_loss", -1e-3}, {strings.Repeat("long", 100), math.Inf(1)}}
	if err := w.Write(1<<40, scalars); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(7, nil); err != nil { // leaves nothing
		t.Fatal(err)
	}
	a := New(Options{})
	if err := a.Add([]float32{0, 0}, []float32{1, 0}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Scalars(9, "eval", a.Report()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(w.Path()) // visible before Close
	if err != nil {
		t.Fatal(err)
	}
	got, err := readEvents(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range scalars {
		scalars[i].Value = float64(float32(scalars[i].Value))
	}
	ln2 := float64(float32(math.Ln2))
	want := []event{
		{wall: started, version: "brain.Event:2"},
		{wall: started + 1, step: 1 << 40, scalars: scalars},
		{wall: started + 1, step: 9, scalars: []Scalar{{"eval/auc", 0.5}, {"eval/log_loss", ln2}, {"eval/normalized_entropy", 1},
			{"eval/copc", 1}, {"eval/base_rate", 0.5}, {"eval/mean_prediction", 0.5}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("file holds\n%+v, want\n%+v", got, want)
	}
	for i := range b { // the decoder, and with it the file, notices any flipped bit
		b[i] ^= 0x10
		if _, err := readEvents(b); err == nil {
			t.Errorf("a flipped bit in byte %d went unnoticed", i)
		}
		b[i] ^= 0x10
	}
	second, err := createEvents(dir, func() time.Time { return time.Unix(1_700_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(second.Path(), host+".1") {
		t.Errorf("second file of the same second is %s", second.Path())
	}
	for _, w := range []*EventWriter{w, second} {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMaskedCRC holds the masking against RFC 3720's example of CRC32C: 32
// bytes of zero give 0x8a9136aa.
func TestMaskedCRC(t *testing.T) {
	c := uint32(0x8a9136aa)
	if got, want := maskedCRC(make([]byte, 32)), (c>>15|c<<17)+0xa282ead8; got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

func TestEventsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateEvents(filepath.Join(file, "tb")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no error that names the path: %v", err)
	}
}
