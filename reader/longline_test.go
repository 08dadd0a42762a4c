package reader

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"aibox/reader/internal/faults"
	"aibox/reader/source"
)

// TestHoleIsWeighed puts holes of zeros into a file: each is one bad row, and a large
// one is a loss of its bytes as well, however the file is cut and compressed.
func TestHoleIsWeighed(t *testing.T) {
	const maxLine, hole = 1000, 300_000
	rows := noisyRows(packedRows)
	middle := bytes.IndexByte(rows[len(rows)/2:], '\n') + len(rows)/2 + 1
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	zeros := make([]byte, hole)
	for name, c := range map[string]struct {
		data    []byte
		bad     int64
		bytes   int64 // that are lost; 0: none
		badLine int64 // of the loss
	}{
		"in the middle":     {join(rows[:middle], zeros, []byte("\n"), rows[middle:]), 1, hole + 1, int64(bytes.Count(rows[:middle], []byte("\n"))) + 1},
		"in front of a row": {join(rows[:middle], zeros, rows[middle:]), 1, hole + int64(bytes.IndexByte(rows[middle:], '\n')) + 1, int64(bytes.Count(rows[:middle], []byte("\n"))) + 1},
		"at the beginning":  {join(zeros, []byte("\n"), rows), 1, hole + 1, 1},
		"at the end":        {join(rows, zeros), 1, hole, packedRows + 1},
		"two":               {join(zeros, []byte("\n"), rows, zeros, []byte("\n")), 2, 2*hole + 2, 1},
		"a long row":        {join(rows, make([]byte, 2*maxLine-1), []byte("\n"), rows), 1, 0, 0},
		"a longer row":      {join(rows, make([]byte, 2*maxLine), []byte("\n"), rows), 1, 2*maxLine + 1, packedRows + 1},
	} {
		for _, file := range []string{"data", "data.gz", "data.zst"} {
			compression := source.CompressionOf(file)
			stored := c.data
			if compression != source.NoCompression {
				stored = packed(t, compression, c.data)
			}
			path := write(t, t.TempDir(), file, stored)
			next := write(t, filepath.Dir(path), "next", adRows(100)) // the loss is that of the first file
			var want string
			for _, chunk := range []int64{1 << 22, 1 << 15, 997, 100_000} {
				o := testOptions(adSchema(), path, next)
				var quarantine bytes.Buffer
				o.ChunkBytes, o.MaxLineBytes, o.Quarantine, o.QuarantineRows = chunk, maxLine, &quarantine, 100
				_, counts := mustRead(t, o)
				got := fmt.Sprintf("%+v %s", counts, quarantine.String())
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s, %s: chunks of %d bytes give %s, want %s", name, file, chunk, got, want)
				}
				if counts.BadRows != c.bad || counts.Bad[0].Reason != faults.ReasonTooLong || (c.bytes == 0) != (len(counts.Lost) == 0) {
					t.Fatalf("%s, %s, chunks of %d: %+v", name, file, chunk, counts)
				}
				if c.bytes == 0 {
					continue
				}
				share := float64(c.bytes) / float64(len(c.data))
				l := counts.Lost[0]
				if wantBytes := share * float64(len(stored)); math.Abs(float64(l.Bytes)-wantBytes) > 1 || l.URI != path || l.Line != c.badLine || !l.Estimated {
					t.Errorf("%s, %s: %+v, want %v bytes", name, file, l, wantBytes)
				}
				if wantRows := share / (1 - share) * float64(counts.Rows-100); math.Abs(float64(l.Rows)-wantRows) > 0.001*wantRows+1 {
					t.Errorf("%s, %s: %d rows are said to be lost, want %v", name, file, l.Rows, wantRows)
				}
			}
			o := defaultLimits(testOptions(adSchema(), path))
			o.MaxLineBytes, o.MaxLostFraction = maxLine, 0.002
			var lost *LostDataError
			if _, _, err := readAll(o); errors.As(err, &lost) != (c.bytes >= hole) {
				t.Errorf("%s, %s: %v", name, file, err)
			}
		}
	}
}
