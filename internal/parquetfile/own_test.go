package parquetfile

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
)

// The file mixed_codecs.parquet was written by fastparquet 2026.9, in six row groups of 40 rows
// that were appended with another codec each: Snappy, the older LZ4 without Hadoop's form, gzip,
// LZ4_RAW, none and zstd. Row i has i and "text i/4".

func TestRowGroupsOfSeveralCodecs(t *testing.T) {
	var ints, words []string
	for i := range 240 {
		ints, words = append(ints, fmt.Sprint(i)), append(words, fmt.Sprint("text ", i/4))
	}
	got := texts(t, "mixed_codecs.parquet")
	if !slices.Equal(got["i"], ints) || !slices.Equal(got["s"], words) {
		t.Errorf("columns are wrong: %v", got)
	}
}

// The files streams_v1.parquet and streams_v2.parquet were written by pyarrow 26, with
// BYTE_STREAM_SPLIT of all columns and LZ4_RAW or Snappy, in pages of version 1 or 2. Row i of 60
// has in i the lower 32 bits of i·2654435761 minus 2^31, in l 2^20 times that plus 5, in d that as
// a decimal of 9 bytes, and in f the number i; all four are null where i % 7 is 6. In list it has i
// i%3 times.

func TestStreamsOfBytes(t *testing.T) {
	want := map[string][]string{}
	for i := range 60 {
		x := int64(uint32(i*2654435761)) - 1<<31
		list := make([]string, max(1, i%3))
		if i%7 == 6 {
			for _, column := range []string{"i", "l", "d", "f"} {
				want[column] = append(want[column], "")
			}
			list = list[:1]
		} else {
			d := []byte{byte(x >> 63), byte(x >> 56), byte(x >> 48), byte(x >> 40), byte(x >> 32), byte(x >> 24), byte(x >> 16), byte(x >> 8), byte(x)}
			want["i"], want["l"] = append(want["i"], fmt.Sprint(x)), append(want["l"], fmt.Sprint(x<<20+5))
			want["d"], want["f"] = append(want["d"], string(d)), append(want["f"], fmt.Sprint(i))
			for j := range i % 3 {
				list[j] = fmt.Sprint(x)
			}
		}
		want["list"] = append(want["list"], list...)
	}
	for _, name := range []string{"streams_v1.parquet", "streams_v2.parquet"} {
		got := texts(t, name)
		for column := range want {
			if !slices.Equal(got[column], want[column]) {
				t.Errorf("%s: column %s is %q, not %q", name, column, got[column], want[column])
			}
		}
	}
	for _, of := range []parquet.Type{parquet.Int32Type, parquet.ByteArrayType} {
		if text, err := joinStreams(make([]byte, 6), of); !errors.Is(err, parquet.ErrCorrupted) {
			t.Errorf("%v: %v, %v", of, text, err)
		}
	}
}

// TestDamagedPrefixes: texts whose prefixes are said to be long take no room.
func TestDamagedPrefixes(t *testing.T) {
	lengths := func(all ...int32) []byte {
		text, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, all)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := slices.Concat(lengths(0, 1<<30), lengths(1, 0), []byte("x"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decodeBy(&parquet.DeltaByteArray, parquet.ByteArrayType, text, 2)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 1<<20 {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
}
