package convert

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/reader"
)

// TestJoinPartitionColumns checks that a column that only the directories of a side table have can
// be the key of a join, and is added like a column of the files.
func TestJoinPartitionColumns(t *testing.T) {
	for _, format := range []reader.Format{reader.FormatCSV, reader.FormatTSV, reader.FormatParquet} {
		t.Run(format.String(), func(t *testing.T) {
			dir := t.TempDir()
			for dt, rows := range map[string]string{"2026-11-20": "id,n\na,1\n", "2026-11-21": "id,n\nb,2\n"} {
				sub := filepath.Join(dir, "side", "dt="+dt)
				if err := os.MkdirAll(sub, 0o755); err != nil {
					t.Fatal(err)
				}
				text := testOptions(reader.Schema{Format: reader.FormatCSV, Header: true}, write(t, dir, "text.csv", []byte(rows)))
				if _, err := Run(context.Background(), Options{From: text, Format: format, Header: true, To: []string{filepath.Join(sub, "part")}}); err != nil {
					t.Fatal(err)
				}
			}
			side := reader.Options{URIs: []string{filepath.Join(dir, "side")}, Schema: reader.Schema{Format: format, Header: format != reader.FormatParquet}}
			convert := func(rows string, j Join, columns ...OutputColumn) (string, error) {
				j.Table = side
				o := Options{
					From:  testOptions(reader.Schema{Format: reader.FormatCSV, Header: true}, write(t, dir, "rows.csv", []byte(rows))),
					Joins: []Join{j}, Columns: columns, Format: reader.FormatCSV, Header: true, To: []string{filepath.Join(dir, "out.csv")},
				}
				if _, err := Run(context.Background(), o); err != nil {
					return "", err
				}
				return content(t, o.To[0]), nil
			}
			const rows = "day,id\n2026-11-21,b\n2026-11-20,a\n"
			for name, c := range map[string]struct {
				want, rows string
				join       Join
				columns    []OutputColumn
			}{
				"key":                 {"day,id,n\n2026-11-21,b,2\n2026-11-20,a,1\n", rows, Join{On: "day", Key: "dt", Add: []string{"n"}}, nil},
				"key of equal name":   {"dt,id,n\n2026-11-21,b,2\n", "dt,id\n2026-11-21,b\n", Join{On: "dt", Add: []string{"n"}}, nil},
				"added":               {"day,id,dt\n2026-11-21,b,2026-11-21\n2026-11-20,a,2026-11-20\n", rows, Join{On: "id", Add: []string{"dt"}}, nil},
				"added beside a cell": {"day,id,n,dt\n2026-11-21,b,2,2026-11-21\n2026-11-20,a,1,2026-11-20\n", rows, Join{On: "id", Add: []string{"n", "dt"}}, nil},
				"written":             {"dt,n\n2026-11-21,2\n2026-11-20,1\n", rows, Join{On: "id", Add: []string{"n", "dt"}}, namedColumns("dt", "n")},
				"all that files have": {"day,id,n\n2026-11-21,b,2\n2026-11-20,a,1\n", rows, Join{On: "id"}, nil},
				"written, not added":  {"dt,n\n2026-11-21,2\n2026-11-20,1\n", rows, Join{On: "id"}, namedColumns("dt", "n")},
			} {
				if got, err := convert(c.rows, c.join, c.columns...); err != nil || got != c.want {
					t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
				}
			}
			if _, err := convert(rows, Join{On: "id", Add: []string{"hour"}}); err == nil || !strings.Contains(err.Error(), `no column "hour"`) {
				t.Errorf("a column that nothing gives: %v", err)
			}
		})
	}
}
