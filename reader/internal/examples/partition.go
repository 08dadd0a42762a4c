package examples

import (
	"encoding/hex"
	"strings"
)

// Hive and Spark partition tables into directories such as dt=2026-11-20/hour=7/. The
// files in them do not hold the columns dt and hour: these are the same for all rows,
// and their values are in the path, with characters such as / escaped as %2F.

// hiveNullPartition is the value in the directory of the rows without a value.
const hiveNullPartition = "__HIVE_DEFAULT_PARTITION__"

// partition is a column that a file's directories give.
type partition struct {
	Name  string
	value []byte // nil: null
}

// PartitionsOf returns the columns that a file's path gives. If two directories give
// the same column, the inner one is used.
func PartitionsOf(uri string) (list []partition) {
	for rest := uri; ; {
		directory, below, more := strings.Cut(rest, "/")
		if !more {
			return list // what is left is the file
		}
		rest = below
		name, value, found := strings.Cut(directory, "=")
		if !found || name == "" {
			continue
		}
		p := partition{Name: unescapePath(name)}
		if value != hiveNullPartition {
			p.value = []byte(unescapePath(value))
		}
		for i := range list {
			if list[i].Name == p.Name {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		list = append(list, p)
	}
}

// unescapePath replaces each %XX by its character. As in Hive, a % that is not followed
// by two hexadecimal digits stays as it is.
func unescapePath(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var text []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+3 <= len(s) {
			if b, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				text = append(text, b[0])
				i += 2
				continue
			}
		}
		text = append(text, s[i])
	}
	return string(text)
}
