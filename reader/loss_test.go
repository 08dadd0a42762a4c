package reader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/source"
)

// adRows are n good rows of adSchema, as testdata/rows.csv.bz2 has 30,000 of them.
func adRows(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d,%d,a%d,b\n", i%2, i%7, i%5)
	}
	return b.Bytes()
}

const packedRows = 30_000

// packedFiles are packedRows rows in every compression, by the name of the file.
func packedFiles(t *testing.T) map[string][]byte {
	bz2, err := os.ReadFile("testdata/rows.csv.bz2")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"rows.bz2": bz2}
	for _, name := range []string{"rows.gz", "rows.zst", "rows.snappy", "rows.deflate"} {
		// Text that does not compress well: a damaged byte then hits data.
		files[name] = packed(t, source.CompressionOf(name), noisyRows(packedRows))
	}
	return files
}

// noisyRows are adRows with another cell that does not compress.
func noisyRows(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d,%d,a%x,b\n", i%2, i%7, hashes.Random(1, 1, 1, uint64(i)))
	}
	return b.Bytes()
}

// defaultLimits are those of a job file.
func defaultLimits(o Options) Options {
	o.MaxBadRows, o.MaxBadFraction, o.MaxLostFraction, o.BatchSize = -1, 0.01, 0.001, 2048
	return o
}

// TestCutFileEndsTheJob cuts a file of each compression, and text, anywhere. What is
// missing is more than the default limit, whatever the cut left.
func TestCutFileEndsTheJob(t *testing.T) {
	files := packedFiles(t)
	files["rows"] = noisyRows(packedRows)
	for name, whole := range files {
		cuts := []int{len(whole) / 100, len(whole) / 2, len(whole) - 1, len(whole) - 9}
		rng := testseed.Rand(t)
		for range 5 {
			cuts = append(cuts, 1+rng.IntN(len(whole)-1))
		}
		for _, at := range cuts {
			data := whole[:at]
			if name == "rows" {
				line := data[bytes.LastIndexByte(data, '\n')+1:]
				if n := bytes.Count(line, []byte(",")); n == 0 || n == 3 {
					continue // the text ends with a row, or with what is none
				}
			}
			path := write(t, t.TempDir(), name, data)
			_, _, err := readAll(defaultLimits(testOptions(adSchema(), path)))
			var lost *LostDataError
			if !errors.As(err, &lost) || len(lost.Lost) != 1 || lost.Lost[0].URI != path || !lost.Lost[0].Cut || !strings.Contains(err.Error(), path) {
				t.Fatalf("%s cut at %d of %d: %v", name, at, len(whole), err)
			}
			o := testOptions(adSchema(), path)
			_, counts, err := readAll(o)
			if err != nil && !errors.Is(err, ErrNoExamples) {
				t.Fatal(err)
			}
			if l := counts.Lost; len(l) != 1 || l[0].Bytes < int64(at) || counts.LostBytes != l[0].Bytes || l[0].Line < counts.Rows-1 {
				t.Fatalf("%s cut at %d: %+v", name, at, counts)
			}
		}
	}
}

// TestDamageIsWeighed changes bytes of a file of each compression. What is said to
// be lost covers what really is, and the whole file only where nothing can be trusted.
func TestDamageIsWeighed(t *testing.T) {
	for name, whole := range packedFiles(t) {
		rng := testseed.Rand(t)
		noticed := 0
		for range 10 {
			at := 20 + rng.IntN(len(whole)-20)
			data := bytes.Clone(whole)
			data[at] ^= byte(1 + rng.IntN(255))
			path := write(t, t.TempDir(), name, data)
			_, counts, err := readAll(testOptions(adSchema(), path))
			if err != nil && !errors.Is(err, ErrNoExamples) {
				t.Fatal(err)
			}
			good := counts.Rows - counts.BadRows
			if good == packedRows && len(counts.Lost) == 0 {
				continue // a byte that nothing depends on
			}
			noticed++
			if len(counts.Lost) != 1 || counts.LostBytes <= 0 || counts.Lost[0].URI != path {
				t.Fatalf("%s: byte %d of %d: %+v", name, at, len(whole), counts)
			}
			// Rows are of equal length, so that their share is that of the bytes.
			lost, missing := float64(counts.LostBytes)/float64(len(whole)), 1-float64(counts.Rows)/packedRows
			if lost < missing-0.2 {
				t.Errorf("%s: byte %d of %d: %.2f of the rows are missing, %.2f said to be lost: %+v", name, at, len(whole), missing, lost, counts)
			}
			if _, _, err := readAll(defaultLimits(testOptions(adSchema(), path))); lost > 0.001 && err == nil {
				t.Errorf("%s: byte %d of %d: %.2f are lost, and reading goes on", name, at, len(whole), lost)
			}
		}
		if noticed == 0 {
			t.Errorf("%s: no damage was noticed", name)
		}
	}
}

// TestDamagedRowsOfParquetAreCounted checks the number of lost rows, which Parquet's
// footer gives exactly.
func TestDamagedRowsOfParquetAreCounted(t *testing.T) {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "Y", Role: RoleLabel}, {Name: "B", Role: RoleSparse}}}
	path := damagedRows(t)
	o := testOptions(s, path)
	var out, log bytes.Buffer
	o.Quarantine, o.QuarantineRows = &out, 1
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, counts := mustRead(t, o)
	if counts.LostRows != 300-counts.Examples || len(counts.Lost) != 1 || counts.BadRows != 0 {
		t.Fatalf("%+v", counts)
	}
	l := counts.Lost[0]
	share := float64(l.Bytes) / float64(counts.BytesTotal)
	if want := float64(l.Rows) / 300; l.Estimated || l.Rows != counts.LostRows || share < want-0.01 || share > want+0.01 || l.Line != counts.Examples-100+1 {
		t.Errorf("%+v, %v of the file", l, share)
	}
	var row BadRow
	if err := json.Unmarshal(out.Bytes(), &row); err != nil || row.Reason != faults.ReasonStream || row.LostRows != l.Rows || row.URI != path {
		t.Errorf("in quarantine is %s (%v)", out.String(), err)
	}
	if !strings.Contains(log.String(), "data are lost") || !strings.Contains(log.String(), fmt.Sprint("lost_rows=", l.Rows)) {
		t.Errorf("the log is %s", log.String())
	}
	_, _, err := readAll(defaultLimits(o))
	var lost *LostDataError
	if !errors.As(err, &lost) || lost.Bytes != l.Bytes {
		t.Errorf("%v", err)
	}
}

// TestLossIsWeighedAgainstTheWholeInput checks that the same truncated file ends a job with few
// files, and only causes a warning in one with many.
func TestLossIsWeighedAgainstTheWholeInput(t *testing.T) {
	dir, data := t.TempDir(), packed(t, source.Gzip, adRows(20))
	cut := write(t, dir, "a-cut.gz", data[:len(data)-12])
	for _, c := range []struct {
		files int
		fails bool
	}{{10, true}, {500, true}, {1300, false}} {
		paths := []string{cut}
		for i := range c.files {
			path := filepath.Join(dir, fmt.Sprintf("part-%d.gz", i))
			if i == 0 {
				write(t, dir, filepath.Base(path), data)
			}
			paths = append(paths, filepath.Join(dir, "part-0.gz"))
		}
		_, counts, err := readAll(defaultLimits(testOptions(adSchema(), paths...)))
		var lost *LostDataError
		if errors.As(err, &lost) != c.fails || !c.fails && (err != nil || len(counts.Lost) != 1 || counts.Lost[0].URI != cut) {
			t.Errorf("one of %d files: %v, %v", c.files, err, counts.Lost)
		}
	}
}

// TestLossCountsForTheLimitOfBadRows checks that lost rows count for MaxBadRows, so that a limit of
// 0 allows none.
func TestLossCountsForTheLimitOfBadRows(t *testing.T) {
	data := packed(t, source.Gzip, adRows(20))
	o := testOptions(adSchema(), write(t, t.TempDir(), "a.gz", data[:len(data)-12]))
	for _, most := range []int64{0, 5} {
		o.MaxBadRows = most
		var lost *LostDataError
		if _, _, err := readAll(o); !errors.As(err, &lost) || !strings.Contains(err.Error(), fmt.Sprintf("limit of %d bad rows", most)) {
			t.Errorf("%v", err)
		}
	}
}

// TestLossWithLimit checks that bytes that are not read because of Limit do not make the share of a
// loss smaller.
func TestLossWithLimit(t *testing.T) {
	dir, data := t.TempDir(), packed(t, source.Gzip, adRows(2000))
	cut := write(t, dir, "a.gz", packed(t, source.Gzip, adRows(20))[:60])
	paths := []string{cut}
	for range 500 {
		paths = append(paths, write(t, dir, "b.gz", data))
	}
	o := defaultLimits(testOptions(adSchema(), paths...))
	o.Limit, o.MaxLostFraction = 100, 0.01
	_, _, err := readAll(o)
	var lost *LostDataError
	if !errors.As(err, &lost) {
		t.Errorf("%v", err)
	}
}

// TestNoteBelowTheRowsIsOneBadRow checks that a last line that is not the beginning of a row is one
// bad row, and does not count as the sign of a truncated file.
func TestNoteBelowTheRowsIsOneBadRow(t *testing.T) {
	for _, last := range []string{"\x1a", "(500 rows)", "2,1,a,b", "1,x,a,b"} {
		path := write(t, t.TempDir(), "data", append(adRows(500), last...))
		_, counts, err := readAll(defaultLimits(testOptions(adSchema(), path)))
		if err != nil || counts.BadRows != 1 || len(counts.Lost) != 0 {
			t.Errorf("%q: %v, %+v", last, err, counts)
		}
	}
}
