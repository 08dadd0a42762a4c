package reader

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"aibox/reader/source"
)

func TestNoExamplesNamesTheWorstReason(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, dir, "bad", []byte("1,x,a,b\n1,1,a\n1,2\n"))
	text := write(t, dir, "text", []byte("yes,1,a,b\nno,1,a,b\n"))
	negative := write(t, dir, "negative", []byte("0,1,a,b\n0,1,a,b\n1,1\n"))
	zipped := write(t, dir, "zipped", packed(t, source.Gzip, adRows(30)))
	empty := write(t, dir, "empty", []byte("\n\n"))
	for path, want := range map[string]string{
		bad:      "3 rows, none of them good: the most frequent reason (2) is: wrong column count, for the first time at " + bad + " line 2 (byte 8): wrong column count: 3 cells where 4 are expected; every line is a row, also one that ends within quotation marks",
		text:     "2 rows, none of them good: the most frequent reason (2) is: unparsable number, for the first time at " + text + " line 1 (byte 0): unparsable number: column y: \"yes\"; data.null_values lists cells that mean a missing value, a column of text has role: sparse, and a label is a number, or false or true",
		zipped:   "line 1 (byte 0): wrong column count: it is compressed by gzip, though its name does not end in .gz",
		negative: "3 rows, of which 1 are bad and 2 negatives that sampling dropped",
		empty:    "no rows",
	} {
		o := testOptions(adSchema(), path)
		o.NegativeSampling = 1e-9
		if _, _, err := readAll(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestScanLogsNoBadRows checks that reading logs the first bad row of each reason, and that the
// scan before it logs none.
func TestScanLogsNoBadRows(t *testing.T) {
	var log bytes.Buffer
	o := testOptions(adSchema(), write(t, t.TempDir(), "data", rowsWithBad(20, func(i int) bool { return i%5 == 0 })))
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := Scan(t.Context(), o); err != nil || log.Len() > 0 {
		t.Errorf("%v: %s", err, log.String())
	}
	if mustRead(t, o); strings.Count(log.String(), "bad row") != 1 {
		t.Errorf("the log is %s", log.String())
	}
}
