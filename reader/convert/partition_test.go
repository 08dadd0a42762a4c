package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/reader"
)

// TestConvertPartitionColumns checks that a column that only directories have can be written,
// sorted by and joined by, in every format with named columns, with a schema and without one. It is
// written only if it is named.
func TestConvertPartitionColumns(t *testing.T) {
	ctx := context.Background()
	for _, format := range []reader.Format{reader.FormatCSV, reader.FormatTSV, reader.FormatParquet} {
		t.Run(format.String(), func(t *testing.T) {
			dir := t.TempDir()
			for _, day := range []struct{ dt, rows string }{
				{"2026-11-20", "id,n\na,1\nb,2\n"}, {"2026-11-19 10%3A00", "id,n\nc,3\n"}, {"__HIVE_DEFAULT_PARTITION__", "id,n\nd,4\n"},
			} {
				sub := filepath.Join(dir, "t", "dt="+day.dt)
				if err := os.MkdirAll(sub, 0o755); err != nil {
					t.Fatal(err)
				}
				text := testOptions(reader.Schema{Format: reader.FormatCSV, Header: true}, write(t, dir, "text.csv", []byte(day.rows)))
				if _, err := Run(ctx, Options{From: text, Format: format, Header: true, To: []string{filepath.Join(sub, "part")}}); err != nil {
					t.Fatal(err)
				}
			}
			write(t, dir, "days.csv", []byte("dt,day\n2026-11-20,Fri\n2026-11-19 10:00,Thu\n"))
			days := reader.Options{URIs: []string{filepath.Join(dir, "days.csv")}, Schema: reader.Schema{Format: reader.FormatCSV, Header: true}}
			convert := func(change func(*Options)) (string, error) {
				o := Options{
					From:   testOptions(reader.Schema{Format: format, Header: format != reader.FormatParquet}, filepath.Join(dir, "t")),
					Format: reader.FormatCSV, Header: true, To: []string{filepath.Join(dir, "out.csv")},
				}
				change(&o)
				if _, err := Run(ctx, o); err != nil {
					return "", err
				}
				return content(t, o.To[0]), nil
			}
			for name, c := range map[string]struct {
				want   string
				change func(*Options)
			}{
				"named":   {"dt,id\n2026-11-19 10:00,c\n2026-11-20,a\n2026-11-20,b\n,d\n", func(o *Options) { o.Columns = namedColumns("dt", "id") }},
				"alone":   {"dt\n2026-11-19 10:00\n2026-11-20\n2026-11-20\n\"\"\n", func(o *Options) { o.Columns = namedColumns("dt") }},
				"renamed": {"day\n2026-11-19 10:00\n2026-11-20\n2026-11-20\n\"\"\n", func(o *Options) { o.Columns = []OutputColumn{{From: "dt", Column: reader.Column{Name: "day"}}} }},
				"schema": {"dt,n\n2026-11-19 10:00,3\n2026-11-20,1\n2026-11-20,2\n,4\n", func(o *Options) {
					o.From.Schema.Columns, o.Columns = []reader.Column{{Name: "n"}}, namedColumns("dt", "n")
				}},
				"all":    {"id,n\nc,3\na,1\nb,2\nd,4\n", func(*Options) {}},
				"sorted": {"id,n\nd,4\nc,3\na,1\nb,2\n", func(o *Options) { o.SortBy = "dt" }},
				"joined": {"id,n,day\nc,3,Thu\na,1,Fri\nb,2,Fri\nd,4,\n", func(o *Options) { o.Joins = []Join{{Table: days, On: "dt"}} }},
			} {
				if got, err := convert(c.change); err != nil || got != c.want {
					t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
				}
			}
			var wrong *reader.OptionsError
			if _, err := convert(func(o *Options) { o.Columns = namedColumns("hour") }); !errors.As(err, &wrong) || !strings.Contains(err.Error(), `no column "hour"`) {
				t.Errorf("a column that nothing gives: %v", err)
			}
		})
	}
}
