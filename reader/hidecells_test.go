package reader

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuotedCells checks that the log and errors show the beginning of a bad cell, and that it is
// longer. With HideCells they must show nothing of it, in text and in Parquet.
func TestQuotedCells(t *testing.T) {
	const secret = "jane.doe@example.org"
	long := secret + strings.Repeat("x", 100)
	for _, format := range []Format{FormatCSV, FormatParquet} {
		for _, hide := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "in")
			s := Schema{Format: format, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "n", Role: RoleDense}}}
			o := testOptions(s, path)
			rows, err := CreateRows(context.Background(), o.Sources, path, format, Schema{Format: format, Columns: []Column{{Name: "y"}, {Name: "n"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{"1", long} {
				if err := rows.Write([][]byte{[]byte("1"), []byte(n)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			var log, quarantine bytes.Buffer
			o.Logger, o.Quarantine, o.QuarantineRows, o.MaxBadRows, o.HideCells = slog.New(slog.NewTextHandler(&log, nil)), &quarantine, 9, 0, hide
			_, _, err = readAll(o)
			var bad *BadRowsError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), "column n") {
				t.Fatalf("%v: %v", format, err)
			}
			for what, text := range map[string]string{"the error": err.Error(), "the log": log.String()} {
				if quoted := strings.Contains(text, secret) && strings.Contains(text, "…"); quoted == hide || strings.Contains(text, long) || hide && strings.Contains(text, "jane") {
					t.Errorf("%v, hidden %v: %s is %s", format, hide, what, text)
				}
			}
			if hide && strings.Contains(quarantine.String(), "jane") {
				t.Errorf("%v: the quarantine has %s", format, quarantine.String())
			}
		}
	}
}

// TestCellsThatCannotBeWritten: the errors of writers show only the beginning of a cell.
func TestCellsThatCannotBeWritten(t *testing.T) {
	columns := []Column{{Name: "y", Role: RoleLabel}, {Name: "n", Role: RoleDense}}
	for format, cell := range map[Format]string{
		FormatCSV: "Jane Doe\n", FormatLibSVM: "Jane Doe",
	} {
		path := filepath.Join(t.TempDir(), "out")
		rows, err := CreateRows(context.Background(), testOptions(Schema{}, path).Sources, path, format, Schema{Format: format, Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		err = rows.Check([][]byte{[]byte("1"), []byte(cell + strings.Repeat("x", 100))})
		if err == nil || !strings.Contains(err.Error(), "Jane Doe") || strings.Contains(err.Error(), strings.Repeat("x", 60)) {
			t.Errorf("%v: %v", format, err)
		}
		if err := rows.Abort(); err != nil {
			t.Error(err)
		}
	}
}
