package reader

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

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
	var data bytes.Buffer
	w := parquet.NewGenericWriter[row](&data)
	if _, err := w.Write([]row{{1, at.UnixMilli(), at, at, 20777, 7}, {0, before.UnixMilli(), before, before, -1, 8}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "millis", Role: RoleSparse}, {Name: "micros"}, {Name: "nanos"}, {Name: "day"}, {Name: "plain"}}}
	o := testOptions(s, write(t, t.TempDir(), "a.parquet", data.Bytes()))
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
