package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/rowtext"
	"aibox/reader/source"
)

// This file reads the headers of delimited files. A header that does not match the
// schema mostly means that the file is of another kind than the schema says, so the
// errors try to tell which kind it is.

// errNothing says that a file is empty or holds only empty lines.
var errNothing = errors.New("no header: the file is empty or has only empty lines")

// beginning returns the first lines of the file. Close ends reading.
func (f *inputFile) beginning(ctx context.Context, o *Options) (lines *rowtext.Lines, closeFile func(), err error) {
	raw, err := o.Sources.OpenRange(ctx, f.File, 0)
	if err != nil {
		return nil, nil, err
	}
	text, err := source.Decompress(f.Compression, raw)
	if err != nil {
		_ = raw.Close() // only read
		return nil, nil, fmt.Errorf("%s: no header: %w", f.URI, err)
	}
	const usual = 4096 // longer lines are read in several steps
	lines = rowtext.NewLines(usual)
	lines.Reset(text, 0, usual, o.MaxLineBytes)
	return lines, func() {
		_ = text.Close() // a decoder
		_ = raw.Close()  // only read
	}, nil
}

// lacksLabel reports whether a file without a header has no labels: its first line then has one
// cell less than m. Read errors are left to the reading of the rows.
func (f *inputFile) lacksLabel(ctx context.Context, o *Options, p *examples.Plan, m *examples.CellMap) bool {
	lines, closeFile, err := f.beginning(ctx, o)
	if err != nil {
		return false
	}
	defer closeFile()
	for {
		line, _, tooLong, err := lines.Next()
		if err != nil || tooLong {
			return false
		}
		if line = rowtext.TrimBOM(line); len(line) > 0 {
			return p.LacksOne(m, line)
		}
	}
}

// header returns the names in the file's first line, or errNothing.
func (f *inputFile) header(ctx context.Context, o *Options, p *examples.Plan) ([]string, error) {
	lines, closeFile, err := f.beginning(ctx, o)
	if err != nil {
		return nil, err
	}
	defer closeFile()
	line, _, tooLong, err := lines.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errNothing
	case err != nil:
		return nil, fmt.Errorf("%s: no header: %w", f.URI, err)
	}
	line = rowtext.TrimBOM(line)
	for len(line) == 0 {
		switch next, _, _, err := lines.Next(); {
		case errors.Is(err, io.EOF) && lines.Ended():
			return nil, errNothing
		case err != nil || len(next) > 0:
			return nil, fmt.Errorf("%s: no header: the first line is empty", f.URI)
		}
	}
	if odd := oddText(line); odd != "" {
		return nil, fmt.Errorf("%s: no header: %s", f.URI, odd)
	}
	if tooLong {
		return nil, fmt.Errorf("%s: the header is longer than %d bytes; it begins with %s", f.URI, o.MaxLineBytes, rowtext.Shown(line))
	}
	cells, ok := p.Split(0).Split(line, len(line)+1)
	switch {
	case !utf8.Valid(line):
		return nil, fmt.Errorf("%s: the header is not UTF-8 (byte %d): %s", f.URI, rowtext.InvalidAt(line)+1, rowtext.Shown(line))
	case !ok:
		return nil, fmt.Errorf("%s: the header has bad quoting (a quoted cell must end on its line): %s", f.URI, rowtext.Shown(line))
	}
	names := make([]string, len(cells))
	for i, cell := range cells {
		names[i] = strings.TrimSpace(string(cell))
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] && p.Needs(name) {
			return nil, fmt.Errorf("%s: the header names column %s twice", f.URI, rowtext.Shown([]byte(name)))
		}
		seen[name] = true
	}
	return names, nil
}

// oddText says why the first line of a file does not look like a line of text; ""
// if it does.
func oddText(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("PAR1")):
		return "it is a Parquet file; set the format to parquet"
	case bytes.HasPrefix(line, []byte("\x1f\x8b")):
		return "it is compressed by gzip, though its name does not end in .gz; set the compression to gzip"
	case bytes.HasPrefix(line, []byte("\x28\xb5\x2f\xfd")):
		return "it is compressed by zstd, though its name does not end in .zst; set the compression to zstd"
	case len(line) > 4 && bytes.HasPrefix(line, []byte("BZh")) && bytes.HasPrefix(line[4:], []byte("1AY&SY")):
		return "it is compressed by bzip2, though its name does not end in .bz2; set the compression to bzip2"
	case len(line) > 1 && line[0] == 'x' && bytes.IndexByte([]byte{1, 0x9c, 0xda}, line[1]) >= 0:
		return "it is compressed by zlib, though its name does not end in .deflate; set the compression to deflate"
	case bytes.HasPrefix(line, []byte("ORC")) && !utf8.Valid(rowtext.Prefix(line)):
		return "it is an ORC file, which cannot be read; write it as Parquet or text"
	case bytes.HasPrefix(line, []byte("Obj\x01")):
		return "it is an Avro file, which cannot be read; write it as Parquet or text"
	case bytes.HasPrefix(line, []byte("SEQ")) && len(line) > 3 && line[3] <= 6:
		return "it is a SequenceFile of Hadoop, which cannot be read; write it as Parquet or text"
	case bytes.HasPrefix(line, []byte("\x04\x22\x4d\x18")), bytes.HasPrefix(line, []byte("\x89LZO\x00")):
		return "it is compressed by LZ4 or LZO, which cannot be read; decompress it first, or compress it by zstd or gzip"
	case bytes.HasPrefix(line, []byte("PK\x03\x04")):
		return "it is a zip archive; unpack it first"
	case bytes.HasPrefix(line, []byte("\xfd7zXZ")):
		return "it is compressed by xz, which cannot be read; decompress it first, or compress it by zstd or gzip"
	case bytes.HasPrefix(line, []byte("\xff\xfe")), bytes.HasPrefix(line, []byte("\xfe\xff")),
		len(line) >= 2 && (line[0] == 0) != (line[1] == 0):
		return "it is text in UTF-16; convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8"
	case bytes.IndexByte(line, 0) >= 0:
		return "it is not text: its first line contains zero bytes"
	case bytes.IndexByte(line, '\r') >= 0 && utf8.Valid(rowtext.Prefix(line)):
		return `its lines end with a bare CR (\r), which aibox does not take as a line end; convert it first: tr '\r' '\n'`
	}
	return ""
}
