package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The files delta_*.parquet have 300 rows. Row i, from 1 on, has in u the lower 32 bits of
// i·2654435761, unsigned; in i that minus 2^31, signed; in maybe what u has, or null where i % 7 is
// 6; in list none, u, or u, null and the next u. DuckDB 2.0 has written one, with differences of up
// to 33 bits and, of some columns, a first value of more than 2^31; pyarrow 26 the others, in many
// pages of version 1 or 2, with differences of 32 bits.

func TestDifferencesOfIntegers(t *testing.T) {
	// The 32 bits of a value are compared, which the library takes for a signed integer.
	u := func(i int) string { return fmt.Sprint(int32(uint32(i * 2654435761))) }
	want := map[string][]string{}
	for i := 1; i <= 300; i++ {
		want["u"] = append(want["u"], u(i))
		want["i"] = append(want["i"], fmt.Sprint(int64(uint32(i*2654435761))-1<<31))
		if i%7 == 6 {
			want["maybe"] = append(want["maybe"], "")
		} else {
			want["maybe"] = append(want["maybe"], u(i))
		}
		want["list"] = append(want["list"], [][]string{{""}, {u(i)}, {u(i), "", u(i + 1)}}[i%3]...)
	}
	for _, name := range []string{"delta_duckdb.parquet", "delta_arrow_v1.parquet", "delta_arrow_v2.parquet"} {
		got, stored := texts(t, name), arrays(t, name)
		for column, want := range want {
			if !slices.Equal(got[column], want) {
				t.Errorf("%s: column %s is wrong: %.200s", name, column, got[column])
			}
			some := slices.DeleteFunc(slices.Clone(want), func(text string) bool { return text == "" })
			if !slices.Equal(stored[column], some) {
				t.Errorf("%s: the arrays of column %s are wrong: %.200s", name, column, stored[column])
			}
		}
	}
}

// arrays are the values of all columns that are not null, from the arrays of their pages.
func arrays(t *testing.T, name string) map[string][]string {
	t.Helper()
	r, f := open(t, name)
	all := map[string][]string{}
	for i, path := range f.Schema().Columns() {
		pages, err := Pages(f, r, 0, i)
		if err != nil {
			t.Fatal(err)
		}
		for {
			page, err := NextPage(pages)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s, column %s: %v", name, path[0], err)
			}
			data := page.Data()
			for _, x := range data.Int32() {
				all[path[0]] = append(all[path[0]], fmt.Sprint(x))
			}
			parquet.Release(page)
		}
		if err := pages.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
