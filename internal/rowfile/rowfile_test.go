package rowfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// testRow fills row with any bits at all: those of NaNs must come back, too.
func testRow(random *rand.Rand, l sparsetable.Layout) []float32 {
	row := make([]float32, l.Words())
	for i := range row {
		row[i] = math.Float32frombits(random.Uint32())
	}
	if l.Format != sparsetable.Float32 { // whose NaNs are one
		values := make([]float32, l.ValueDim)
		for i := range values {
			values[i] = float32(random.NormFloat64())
		}
		clear(row[:len(row)-4-l.StateDim])
		l.StoreValues(row, values, 0, sparsetable.NewRounding(1, 1))
	}
	return row
}

func writeRows(t testing.TB, l sparsetable.Layout, rows int, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, l, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for range rows {
		key := random.Uint64()
		if err := w.Add(key, testRow(random, l)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		l    sparsetable.Layout
		rows int
	}{
		{sparsetable.Layout{ValueDim: 1}, 0},
		{sparsetable.Layout{ValueDim: 1}, 1},
		{sparsetable.Layout{ValueDim: 3}, 1500},
		{sparsetable.Layout{ValueDim: 16, StateDim: 16}, maxGroupRows + 700}, // two row groups
		{sparsetable.Layout{ValueDim: 20000, StateDim: 1}, 1000},             // rows of a page and more
		{sparsetable.Layout{ValueDim: 5, StateDim: 2, Format: sparsetable.Float16}, 1500},
		{sparsetable.Layout{ValueDim: 6, Format: sparsetable.BFloat16}, 1500},
	} {
		t.Run(fmt.Sprintf("%+v,%d", c.l, c.rows), func(t *testing.T) {
			file := writeRows(t, c.l, c.rows, seed)
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			if r.Layout() != c.l || r.Rows() != int64(c.rows) {
				t.Fatalf("%+v, %d rows", r.Layout(), r.Rows())
			}
			random := rand.New(rand.NewPCG(seed, 1))
			for i := range c.rows {
				wantKey, want := random.Uint64(), testRow(random, c.l)
				key, row, err := r.Next()
				if err != nil || key != wantKey {
					t.Fatalf("row %d: key %x, %v", i, key, err)
				}
				for j := range want {
					if math.Float32bits(row[j]) != math.Float32bits(want[j]) {
						t.Fatalf("row %d, word %d: %x, want %x", i, j, math.Float32bits(row[j]), math.Float32bits(want[j]))
					}
				}
			}
			if _, _, err := r.Next(); err != io.EOF {
				t.Errorf("after the last row: %v", err)
			}
		})
	}
}

// TestCreatedBy: the file says which version wrote it, as Parquet words that.
func TestCreatedBy(t *testing.T) {
	file := writeRows(t, sparsetable.Layout{ValueDim: 1}, 1, 1)
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if have := f.Metadata().CreatedBy; have != "aibox version 1.2.3" {
		t.Errorf("created by %q", have)
	}
}

// written is a file of rows of any type.
func written[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readRows(file []byte) (rows []string, err error) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		key, row, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, fmt.Sprint(key, r.Layout().Values(row), r.Layout().State(row), r.Layout().Stats(row)))
	}
}

// TestOtherWriters reads files that another program wrote.
func TestOtherWriters(t *testing.T) {
	type plain struct {
		Values []float32 `parquet:"values,list"`
		Note   string    `parquet:"note"`
		Key    int64     `parquet:"key"`
	}
	rows, err := readRows(written(t, plain{[]float32{1, 2}, "a", -1}, plain{[]float32{3, 4}, "b", 7}))
	if err != nil || fmt.Sprint(rows) != "[18446744073709551615 [1 2] [] {0 0 0 1} 7 [3 4] [] {0 0 0 1}]" {
		t.Errorf("%v, %v", rows, err)
	}
	type optional struct {
		Key    *uint64   `parquet:"key,optional"`
		Values []float32 `parquet:"values,optional,list"`
		Show   *float32  `parquet:"show,optional"`
	}
	one, half := uint64(1), float32(0.5)
	rows, err = readRows(written(t, optional{&one, []float32{1}, &half}))
	if err != nil || fmt.Sprint(rows) != "[1 [1] [] {0.5 0 0 1}]" {
		t.Errorf("%v, %v", rows, err)
	}
	// Counters of 32 bits, with and without a sign.
	type signed struct {
		plain
		LastSeen int32 `parquet:"last_seen"`
		Count    int32 `parquet:"count"`
	}
	type unsigned struct {
		plain
		LastSeen uint32 `parquet:"last_seen"`
		Count    uint32 `parquet:"count"`
	}
	first := plain{[]float32{1}, "", 1}
	rows, err = readRows(written(t, signed{first, math.MaxInt32, 3}))
	if err != nil || fmt.Sprint(rows) != "[1 [1] [] {0 0 2147483647 3}]" {
		t.Errorf("%v, %v", rows, err)
	}
	rows, err = readRows(written(t, unsigned{first, math.MaxUint32, math.MaxInt32 + 1}))
	if err != nil || fmt.Sprint(rows) != "[1 [1] [] {0 0 4294967295 2147483648}]" {
		t.Errorf("%v, %v", rows, err)
	}
	for want, file := range map[string][]byte{
		"row 2, column last_seen: -5 is less than 0":        written(t, signed{first, 0, 1}, signed{first, -5, 1}),
		"row 1, column count: -1 is less than 0":            written(t, signed{first, 0, -1}),
		"row 2, column values: a list has 1 values, want 2": written(t, plain{[]float32{1, 2}, "", 1}, plain{[]float32{3}, "", 2}),
		"row 2, column values: a list has 0 values, want 2": written(t, plain{[]float32{1, 2}, "", 1}, plain{nil, "", 2}, plain{[]float32{1, 2}, "", 1}),
		"row 1, column key: it is empty":                    written(t, optional{nil, []float32{1}, &half}),
		`there is no column "key"`: written(t, struct {
			K uint64 `parquet:"k"`
		}{}),
		`there is no column "values"`: written(t, struct {
			Key uint64 `parquet:"key"`
		}{}),
		`column "key" does not hold 64-bit integers`: written(t, struct {
			Key    string    `parquet:"key"`
			Values []float32 `parquet:"values,list"`
		}{}),
		`column "values" does not hold lists of 32-bit floats`: written(t, struct {
			Key    uint64    `parquet:"key"`
			Values []float64 `parquet:"values,list"`
		}{}),
		`column "values" is a group of several`: written(t, struct {
			Key    uint64 `parquet:"key"`
			Values struct {
				A, B float32
			} `parquet:"values"`
		}{}),
		"say how long values are":       written[plain](t),
		"x.parquet: not a Parquet file": []byte("key,values\n1,2\n"),
		"too short":                     nil,
	} {
		_, err := readRows(file)
		var bad *FormatError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestEmptyGroups reads files with row groups that have no rows, as pyarrow
// writes them for empty tables.
func TestEmptyGroups(t *testing.T) {
	rows, err := readRows(testFile(t, "empty_groups.parquet"))
	if err != nil || fmt.Sprint(rows) != "[1 [1 2] [] {0 0 0 1} 2 [3 4] [] {0 0 0 1} 3 [5 6] [] {0 0 0 1}]" {
		t.Errorf("%v, %v", rows, err)
	}
	_, err = readRows(testFile(t, "no_rows.parquet"))
	var bad *FormatError
	if !errors.As(err, &bad) || !errors.Is(err, ErrNoRows) || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "x.parquet: there are no rows") {
		t.Errorf("%v", err)
	}
}

func testFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestStatisticsWithOneBound reads a file of pyarrow 26 with a further column, of texts, whose
// statistics have a minimum alone, since the maximum is too long. The library misreads the footer
// from there on.
func TestStatisticsWithOneBound(t *testing.T) {
	rows, err := readRows(testFile(t, "one_bound.parquet"))
	if err != nil || fmt.Sprint(rows) != "[1 [0.5] [] {0 0 0 1} 2 [1.5] [] {0 0 0 1} 3 [2.5] [] {0 0 0 1}]" {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestDamage flips bytes: reading ends, with an error or other rows.
func TestDamage(t *testing.T) {
	seed := testseed.Of(t)
	file := writeRows(t, sparsetable.Layout{ValueDim: 4, StateDim: 1}, 2000, seed)
	random := rand.New(rand.NewPCG(seed, 2))
	noticed := 0
	for range 300 {
		damaged := bytes.Clone(file)
		for range 1 + random.IntN(3) {
			damaged[random.IntN(len(damaged))] ^= 1 << random.IntN(8)
		}
		if random.IntN(4) == 0 {
			damaged = damaged[:random.IntN(len(damaged))]
		}
		_, err := readRows(damaged)
		var bad *FormatError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil {
			noticed++
		}
	}
	if noticed < 100 {
		t.Errorf("%d of 300 noticed", noticed)
	}
}

// TestLongFooter: no memory is taken for a footer that cannot be there.
func TestLongFooter(t *testing.T) {
	file := writeRows(t, sparsetable.Layout{ValueDim: 4}, 10, 1)
	file[len(file)-5] = 0x7f
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewReader(bytes.NewReader(file), int64(len(file)), "x.parquet")
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "footer") {
		t.Errorf("error %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	w, err := NewWriter(io.Discard, l, "1.2.3")
	if err != nil {
		b.Fatal(err)
	}
	row := testRow(rand.New(rand.NewPCG(1, 1)), l)
	b.SetBytes(int64(8 + l.Bytes()))
	for i := range b.N {
		row[0] = float32(i)
		if err := w.Add(uint64(i)*0x9e3779b97f4a7c15, row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	l := sparsetable.Layout{ValueDim: 16, StateDim: 4}
	file := writeRows(b, l, 100_000, 1)
	b.SetBytes(int64(8 + l.Bytes()))
	b.ResetTimer()
	for n := 0; n < b.N; {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), "x")
		if err != nil {
			b.Fatal(err)
		}
		for ; n < b.N; n++ {
			if _, _, err := r.Next(); err != nil {
				break
			}
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLZ4 is read as it is in data, and damage in it is an error.
func TestLZ4(t *testing.T) {
	type rowOfTable struct {
		Key    uint64    `parquet:"key"`
		Values []float32 `parquet:"values,list"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[rowOfTable](&b, parquet.Compression(&parquet.Lz4Raw))
	for i := range 100 {
		if _, err := w.Write([]rowOfTable{{uint64(i), []float32{1, 2}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rows, err := readRows(b.Bytes()); err != nil || len(rows) != 100 || !strings.HasPrefix(rows[99], "99 [1 2]") {
		t.Error(rows, err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	column := file.Metadata().RowGroups[0].Columns[0].MetaData
	bad := b.Bytes()
	for i := column.DataPageOffset + column.TotalCompressedSize - 8; i < column.DataPageOffset+column.TotalCompressedSize; i++ {
		bad[i] ^= 0xff
	}
	var fault *FormatError
	if _, err := readRows(bad); !errors.As(err, &fault) || !strings.Contains(err.Error(), "row 1, column key:") {
		t.Error(err)
	}
}
