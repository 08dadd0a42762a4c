package reader

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
)

// bulkRow has columns of all types that are simple and some that are not.
type bulkRow struct {
	Label    *int32   `parquet:"label"`
	Double   *float64 `parquet:"double"`
	DoubleD  *float64 `parquet:"double_d,dict"`
	Float    float32  `parquet:"float"`
	Int      *int32   `parquet:"int"`
	Unsigned uint64   `parquet:"unsigned"`
	Decimal  int64    `parquet:"decimal,decimal(2:9)"`
	Text     *string  `parquet:"text,optional"`
	TextD    *string  `parquet:"text_d,optional,dict"`
	Required string   `parquet:"required"`
	Bytes    []byte   `parquet:"bytes,optional"`
	Key      *int64   `parquet:"key,optional,dict"`
	Small    uint32   `parquet:"small"`
	Real     *float64 `parquet:"real,optional"`
	Flag     bool     `parquet:"flag"`
	List     []string `parquet:"list,list"`
}

// makeBulkRows makes rows, some of which are bad.
func makeBulkRows(n int) (rows []bulkRow) {
	for i := range n {
		draw := func(n uint64, stream uint64) uint64 { return hashes.Random(7, 8, stream, uint64(i)) % n }
		some := func(stream uint64) bool { return draw(5, 100+stream) > 0 }
		var r bulkRow
		if draw(50, 1) > 0 {
			r.Label = new(int32)
			*r.Label = int32(draw(2, 2))
			if draw(60, 3) == 0 {
				*r.Label = 2
			}
		}
		number := func(stream uint64) *float64 {
			if !some(stream) {
				return nil
			}
			x := float64(draw(1000, stream)) / 8
			if draw(80, stream+50) == 0 {
				x = math.NaN()
			}
			return &x
		}
		text := func(stream uint64) *string {
			if !some(stream) {
				return nil
			}
			s := fmt.Sprintf("%c%d", 'a'+rune(draw(200, stream+60)), draw(30, stream))
			switch draw(40, stream+70) {
			case 0:
				s = ""
			case 1:
				s = "\xff" + s
			}
			return &s
		}
		r.Double, r.DoubleD, r.Real = number(10), number(11), number(12)
		r.Float, r.Unsigned, r.Small = float32(draw(100, 13))/3, draw(1<<40, 14)<<24, uint32(draw(1<<32-1, 15))
		if some(16) {
			v := int32(draw(100, 16)) - 50
			r.Int = &v
		}
		r.Decimal = int64(draw(10000, 17))
		r.Text, r.TextD = text(18), text(19)
		r.Required = fmt.Sprint(draw(9, 20))
		if some(21) {
			r.Bytes = []byte{byte(draw(256, 21)), 1}
		}
		if some(22) {
			v := int64(draw(20, 22)) - 3
			r.Key = &v
		}
		r.Flag = draw(2, 23) == 1
		for j := range draw(3, 24) {
			r.List = append(r.List, fmt.Sprint(j, draw(5, 25)))
		}
		rows = append(rows, r)
	}
	return rows
}

func bulkSchema() Schema {
	s := Schema{Format: FormatParquet, Columns: []Column{{Name: "label", Role: RoleLabel}}}
	for _, name := range []string{"double", "double_d", "float", "int", "unsigned", "decimal"} {
		s.Columns = append(s.Columns, Column{Name: name, Role: RoleDense, Missing: -1})
	}
	s.Columns[1].Transforms = []rowschema.Transform{{Kind: rowschema.TransformLog1p}}
	s.Columns[2].Transforms = []rowschema.Transform{{Kind: rowschema.TransformClip, Min: 3, Max: 50}}
	for _, name := range []string{"text", "text_d", "required", "bytes", "key", "small", "real", "flag", "list"} {
		s.Columns = append(s.Columns, Column{Name: name, Role: RoleSparse})
	}
	return s
}

// simpleColumns are the columns of which many makes whole rows, one of them with an indicator.
func simpleColumns(o *Options) (columns []Column) {
	for _, c := range o.Schema.Columns {
		c.Indicator = c.Name == "int"
		if c.Name != "decimal" && c.Name != "flag" && c.Name != "list" {
			columns = append(columns, c)
		}
	}
	return columns
}

// TestBulkIsAsOneByOne checks that simple columns of Parquet, which are decoded many values at a
// time, yield the same passes, counts and bad rows as if each value were decoded separately.
func TestBulkIsAsOneByOne(t *testing.T) {
	rows := makeBulkRows(2500)
	var file bytes.Buffer
	w := parquet.NewGenericWriter[bulkRow](&file, parquet.PageBufferSize(2000), parquet.MaxRowsPerRowGroup(900), parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := write(t, t.TempDir(), "a.parquet", file.Bytes())
	for i, change := range []func(o *Options){
		func(*Options) {},
		func(o *Options) { o.KeepBadRows, o.PassThrough = true, []string{"text", "double"} },
		func(o *Options) { o.KeepUnlabelled = true },
		func(o *Options) { o.Schema.Label = LabelRule{Column: "int", Op: ">=", Value: 3} },
		func(o *Options) { o.Schema.Columns[8].Separator = "1" },
		func(o *Options) { o.Schema.NullValues = []string{"a1", "3"} },
		func(o *Options) { o.ChunkBytes, o.Threads = 1, 3 },
		func(o *Options) { o.Schema.Columns = simpleColumns(o) },
		func(o *Options) { o.Schema.Columns, o.KeepBadRows = simpleColumns(o), true },
		func(o *Options) { o.Schema.Columns, o.KeepUnlabelled, o.ChunkBytes = simpleColumns(o), true, 1 },
	} {
		read := func(oneByOne bool) (text, quarantine string, counts Counts) {
			var bad bytes.Buffer
			o := testOptions(bulkSchema(), path)
			o.BatchSize, o.QuarantineRows, o.Quarantine = 200, 1000, &bad
			change(&o)
			o.oneByOne = oneByOne
			passes, counts := mustRead(t, o)
			for _, p := range passes {
				text += dumpExported(p)
			}
			return text, bad.String(), counts
		}
		gotText, gotBad, got := read(false)
		wantText, wantBad, want := read(true)
		if gotText != wantText || gotBad != wantBad || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d: %+v, one by one %+v\n%.2000s\n%.2000s", i, got, want, gotBad, wantBad)
		}
		if got.BadRows == 0 || got.Examples < 1000 {
			t.Errorf("%d: %+v: the test tests little", i, got)
		}
	}
}
