package reader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// TestTimesOfSeveralUnits checks that two files whose times have different units are refused as one
// input, since their values cannot be compared. In pass-through columns, which are text, times have
// the form of RFC 3339.
func TestTimesOfSeveralUnits(t *testing.T) {
	type millis struct {
		Y int64 `parquet:"y"`
		T int64 `parquet:"t,timestamp(millisecond)"`
		N int64 `parquet:"n"`
	}
	type micros struct {
		Y int64 `parquet:"y"`
		T int64 `parquet:"t,timestamp(microsecond)"`
		N int64 `parquet:"n"`
	}
	type days struct {
		Y int64 `parquet:"y"`
		T int32 `parquet:"t,date"`
	}
	type plain struct {
		Y int64 `parquet:"y"`
		T int64 `parquet:"t"`
	}
	type clock struct {
		Y int64 `parquet:"y"`
		T int64 `parquet:"t,time(nanosecond)"`
	}
	dir := t.TempDir()
	files := map[string]string{
		"milliseconds": writeParquet(t, dir, "milliseconds", []millis{{1, 1, 1}}), "microseconds": writeParquet(t, dir, "microseconds", []micros{{1, 1, 1}}),
		"days": writeParquet(t, dir, "days", []days{{1, 1}}), "nanoseconds": writeParquet(t, dir, "nanoseconds", []clock{{1, 1}}),
		"none": writeParquet(t, dir, "none", []plain{{1, 1}}), "nothing": writeParquet(t, dir, "nothing", []micros{}),
	}
	sparse := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "t", Role: RoleSparse}}}
	dense := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "t", Role: RoleDense}}}
	for _, s := range []Schema{sparse, dense} {
		for _, names := range [][]string{{"milliseconds", "microseconds"}, {"days", "milliseconds"}, {"nothing", "none", "microseconds", "nanoseconds"}} {
			o := testOptions(s)
			for _, name := range names {
				o.URIs = append(o.URIs, files[name])
			}
			first, last := names[len(names)-2], names[len(names)-1]
			_, _, err := readAll(o)
			want := fmt.Sprintf(`%s: the unit of column "t" is %s, but %s in %s`, files[last], last, first, files[first])
			if !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: the error is %v, want %s", names, err, want)
			}
		}
		mustRead(t, testOptions(s, files["none"], files["milliseconds"], files["nothing"], files["milliseconds"]))
	}
	o := testOptions(Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "n", Role: RoleSparse}, {Name: "t"}}}, files["milliseconds"], files["microseconds"])
	o.PassThrough = []string{"t"}
	mustRead(t, o)
	o.KeepLists = true
	if _, _, err := readAll(o); err == nil {
		t.Error("integers of several units were passed through")
	}
}

// writeParquet writes a file with the library and a struct per row.
func writeParquet[T any](t *testing.T, dir, name string, rows []T) string {
	t.Helper()
	var data bytes.Buffer
	w := parquet.NewGenericWriter[T](&data)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, dir, name, data.Bytes())
}

// TestTimesArePassedThroughAsText, while they stay numbers as features.
func TestTimesArePassedThroughAsText(t *testing.T) {
	type row struct {
		Y      int64     `parquet:"y"`
		Millis int64     `parquet:"millis,timestamp(millisecond)"`
		Micros time.Time `parquet:"micros,timestamp(microsecond)"`
		Nanos  time.Time `parquet:"nanos,timestamp(nanosecond)"`
		Day    int32     `parquet:"day,date"`
		Plain  int64     `parquet:"plain"`
	}
	at := time.Date(2026, 11, 20, 10, 30, 0, 1500, time.UTC)
	before := time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
	path := writeParquet(t, t.TempDir(), "a.parquet", []row{{1, at.UnixMilli(), at, at, 20777, 7}, {0, before.UnixMilli(), before, before, -1, 8}})
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "millis", Role: RoleSparse}, {Name: "micros"}, {Name: "nanos"}, {Name: "day"}, {Name: "plain"}}}
	o := testOptions(s, path)
	o.PassThrough = []string{"millis", "micros", "nanos", "day", "plain"}
	passes, _ := mustRead(t, o)
	want := "[[2026-11-20T10:30:00Z 1969-12-31T23:59:59.999Z] [2026-11-20T10:30:00.000001Z 1969-12-31T23:59:59.999Z] " +
		"[2026-11-20T10:30:00.0000015Z 1969-12-31T23:59:59.999Z] [2026-11-20 1969-12-31] [7 8]]"
	if got := fmt.Sprint(passes[0].Batches[0].Columns); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := passes[0].Keys[0], Key("millis", fmt.Append(nil, at.UnixMilli())); got != want {
		t.Errorf("the feature's key is %x, want %x", got, want)
	}
}
