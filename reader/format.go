package reader

import (
	"fmt"
	"strings"

	"aibox/reader/source"
)

// Format is how rows are written in a file.
type Format uint8

// The formats. Criteo is tab-separated text without quoting or header; CSV and
// TSV differ only in their default delimiter.
const (
	FormatCriteo Format = iota
	FormatCSV
	FormatTSV
	FormatLibSVM
	FormatLibFFM
	FormatParquet
)

var formatNames = [...]string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"}

// String returns the name that ParseFormat takes.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// FormatOf tells a file's format by its extension, which is the name of a format,
// or .svm or .ffm; the extension of a compression after it is ignored. ok is false
// where the extension is another one.
func FormatOf(file string) (format Format, ok bool) {
	base := strings.ToLower(file)
	if i := strings.LastIndexByte(base, '.'); i >= 0 && source.CompressionOf(base) != source.NoCompression {
		base = base[:i]
	}
	i := strings.LastIndexByte(base, '.')
	if i < 0 {
		return 0, false
	}
	ext := base[i+1:]
	switch ext {
	case "svm":
		ext = "libsvm"
	case "ffm":
		ext = "libffm"
	}
	format, err := ParseFormat(ext)
	return format, err == nil
}

// ParseFormat returns the format of that name: criteo, csv, tsv, libsvm, libffm
// or parquet.
func ParseFormat(name string) (Format, error) {
	for i, n := range formatNames {
		if n == name {
			return Format(i), nil
		}
	}
	return 0, fmt.Errorf("reader: unknown format %q; known are %v", name, formatNames)
}

// delimited formats have one cell per column and line.
func (f Format) delimited() bool { return f == FormatCriteo || f == FormatCSV || f == FormatTSV }

// Indexed formats have index:value tokens instead of cells.
func (f Format) Indexed() bool { return f == FormatLibSVM || f == FormatLibFFM }

// separated formats choose their delimiter, quoting and null values.
func (f Format) separated() bool { return f == FormatCSV || f == FormatTSV }
