package rowschema

import (
	"fmt"
	"slices"
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
	return nameOf(f, "Format", formatNames[:])
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
	return byName[Format](name, "format", formatNames[:])
}

// nameOf is the name of a value of an enumeration.
func nameOf[T ~uint8](v T, kind string, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, uint8(v))
}

// byName is the inverse of nameOf.
func byName[T ~uint8](name, kind string, names []string) (T, error) {
	if i := slices.Index(names, name); i >= 0 {
		return T(i), nil
	}
	return 0, fmt.Errorf("reader: unknown %s %q; known are %v", kind, name, names)
}

// Delimited formats have one cell per column and line.
func (f Format) Delimited() bool { return f == FormatCriteo || f == FormatCSV || f == FormatTSV }

// Indexed formats have index:value tokens instead of cells.
func (f Format) Indexed() bool { return f == FormatLibSVM || f == FormatLibFFM }

// Separated formats choose their delimiter, quoting and null values.
func (f Format) Separated() bool { return f == FormatCSV || f == FormatTSV }
