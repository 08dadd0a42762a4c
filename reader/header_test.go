package reader

import (
	"aibox/reader/source"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// inUTF16 encodes text, little-endian, with a byte order mark.
func inUTF16(text string) (data []byte) {
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		data = append(data, byte(u), byte(u>>8))
	}
	return data
}

// TestHeaderMismatchSaysWhy opens files whose headers do not fit adSchema.
func TestHeaderMismatchSaysWhy(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ text, want, not string }{
		{"y;x;c;tags\n1;2;3;4\n", `The header is one cell: is the delimiter ';'?`, "Did you mean"},
		{"y\tx\tc\ttags\n", `is the delimiter '\t'?`, ""},
		{"Y,X,C,Tags\n1,2,3,4\n", `Did you mean "Y" instead of "y"?`, "looks like data"},
		{"1,0.5,a,b\n0,2,c,d\n", "looks like data: if the files have no header, set header: false", "Did you mean"},
		{"1,0.5,a,tag\n0,2,c,d\n", "looks like data: if the files have no header, set header: false", "Did you mean"},
		{"a,1,b\n", "looks like data", ""},
		{"y,1,b\n", `no column "x", "c", "tags"`, "looks like data"},
		{"tags,other,y\n", `no column "x", "c"; its columns are "tags", "other", "y"`, "looks like data"},
		{"y,x,c,tags\r1,2,3,4\r0,2,3,4\r", "end with a bare CR", "no column"},
		{"y,x,c,tags\r" + strings.Repeat("1,2,3,4\r", 1000), "end with a bare CR", "no column"},
		{string(inUTF16("y,x,c,tags\n1,2,3,4\n")), "UTF-16", "no column"},
		{string(inUTF16("y,x,c,tags\n1,2,3,4\n")[2:]), "UTF-16", "no column"},
		{"PAR1\x15\x04\r\x00\xff", "Parquet", "CR"},
		{"\x1f\x8b\x08\x00\r\xff", "gzip", "CR"},
		{"\x28\xb5\x2f\xfd\r\xff", "zstd", "CR"},
		{"BZh91AY&SY\r\xff", "bzip2", "CR"},
		{"PK\x03\x04\x14\x00\r\xff", "zip archive", "zero bytes"},
		{"\xfd7zXZ\x00\x00\r\xff", "xz", "zero bytes"},
		{"y,x,\x00\r\x00,z", "zero bytes", "CR"},
		{"y,x,c,t\xe4gs\n", "not UTF-8 (byte 8)", "no column"},
		{"y,\"x,c,tags\n", "bad quoting", "no column"},
	} {
		s := adSchema()
		s.Header = true
		o := testOptions(s, write(t, dir, fmt.Sprint(i), []byte(c.text)))
		o.MaxLineBytes = 1000
		_, _, err := readAll(o)
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) || c.not != "" && strings.Contains(err.Error(), c.not) {
			t.Errorf("%.40q: %v, want %s, not %s", c.text, err, c.want, c.not)
		}
	}
}

// TestHeaderMismatchIsShort checks that the error about a header prints neither the schema nor the
// header in full.
func TestHeaderMismatchIsShort(t *testing.T) {
	s := Schema{Format: FormatCSV, Header: true, Columns: []Column{{Name: "y", Role: RoleLabel}}}
	var header []string
	for i := range 500 {
		s.Columns = append(s.Columns, Column{Name: fmt.Sprintf("c%d", i), Role: []Role{RoleSparse, RoleDense}[i%2]})
		header = append(header, fmt.Sprintf("%s%d", strings.Repeat("name", 50), i))
	}
	_, _, err := readAll(testOptions(s, write(t, t.TempDir(), "data", []byte(strings.Join(header, ",")+"\n"))))
	want := `no column "y", "c0", "c1", "c2", "c3" and 496 more; its columns are "`
	if err == nil || len(err.Error()) > 1500 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), " and 488 more") {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDamagedHeader checks that a compressed file whose header is damaged, but can be decompressed,
// counts as lost, and the other files are read. If the data of a file are undamaged, a header that
// does not fit is an error about its columns.
func TestDamagedHeader(t *testing.T) {
	s := adSchema()
	s.Header = true
	text := append([]byte("y,x,c,tags\n"), adRows(20)...)
	var stored bytes.Buffer // as it is, so that a damaged byte is one of the text
	w, err := gzip.NewWriterLevel(&stored, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	whole := write(t, dir, "whole.gz", stored.Bytes())
	other := write(t, dir, "other.gz", packed(t, source.Gzip, bytes.Replace(text, []byte("tags"), []byte("tugs"), 1)))
	for _, header := range []string{"y,x,c,tugs", "y,x,c,\xff\xffgs", "y,x,x,tags"} {
		bad := write(t, dir, "bad.gz", bytes.Replace(stored.Bytes(), []byte("y,x,c,tags"), []byte(header), 1))
		_, counts, err := readAll(testOptions(s, bad, whole))
		if err != nil || counts.Examples != 20 || len(counts.Lost) != 1 || counts.Lost[0].URI != bad || !strings.Contains(counts.Lost[0].Cause, "checksum") {
			t.Errorf("%q: %+v, %v", header, counts, err)
		}
		if _, _, err := readAll(defaultLimits(testOptions(s, bad, whole))); !errors.As(err, new(*LostDataError)) {
			t.Errorf("%q: with the default limits: %v", header, err)
		}
	}
	if _, _, err := readAll(testOptions(s, other, whole)); err == nil || !strings.Contains(err.Error(), `no column "tags"`) {
		t.Errorf("another header: %v", err)
	}
}

// TestManyColumns checks that the time for a header does not grow with the square of the number of
// names.
func TestManyColumns(t *testing.T) {
	var header, row strings.Builder
	header.WriteString("y,u")
	row.WriteString("1,a")
	for i := range 100_000 {
		fmt.Fprintf(&header, ",c%d", i)
		row.WriteString(",1")
	}
	s := Schema{Format: FormatCSV, Header: true, Columns: []Column{{Name: "y", Role: RoleLabel}, {Name: "u", Role: RoleSparse}}}
	o := testOptions(s, write(t, t.TempDir(), "wide.csv", []byte(header.String()+"\n"+row.String()+"\n")))
	if _, counts := mustRead(t, o); counts.Examples != 1 {
		t.Errorf("%+v", counts)
	}
}

// TestOddText checks that the errors about files in unsupported encodings or formats say what these
// files are.
func TestOddText(t *testing.T) {
	for line, want := range map[string]string{
		"x\x9cKL":               "set the compression to deflate",
		"\x1f\x8b\x08":          "set the compression to gzip",
		"\x04\x22\x4d\x18\x60":  "LZ4 or LZO",
		"\x89LZO\x00\r":         "LZ4 or LZO",
		"ORC\xff\x00":           "an ORC file",
		"ORC\t1\t2":             "",
		"Obj\x01\x04":           "an Avro file",
		"SEQ\x06\x19org.apache": "a SequenceFile",
		"SEQ\t1":                "",
		"PK\x03\x04":            "a zip archive",
		"x\t1":                  "",
	} {
		if got := oddText([]byte(line)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
