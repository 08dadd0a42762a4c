package reader

import (
	"bytes"
	"strconv"
)

// index is bytes.Index for a separator in text form; -1 where it is "".
func index(cell []byte, separator string) int {
	switch len(separator) {
	case 0:
		return -1
	case 1:
		return bytes.IndexByte(cell, separator[0])
	}
	for i := 0; i+len(separator) <= len(cell); i++ {
		if string(cell[i:i+len(separator)]) == separator {
			return i
		}
	}
	return -1
}

// lastIndex is bytes.LastIndex for a separator in text form; -1 where it is "".
func lastIndex(cell []byte, separator string) int {
	switch len(separator) {
	case 0:
		return -1
	case 1:
		return bytes.LastIndexByte(cell, separator[0])
	}
	for i := len(cell) - len(separator); i >= 0; i-- {
		if string(cell[i:i+len(separator)]) == separator {
			return i
		}
	}
	return -1
}

// appendInt appends decimal text.
func appendInt(text []byte, v int64) []byte { return strconv.AppendInt(text, v, 10) }
