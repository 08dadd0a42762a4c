package rowtext

import "bytes"

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

// Cut cuts a cell around the first separator. Without a separator in it, all of the cell is the
// value, and nothing is left.
func Cut(cell []byte, separator string) (value, rest []byte) {
	if i := index(cell, separator); i >= 0 {
		return cell[:i], cell[i+len(separator):]
	}
	return cell, nil
}

// CutWeight cuts a value before the last separator, behind which its weight is. Without a separator in
// it, all of it is the value, and it has no weight.
func CutWeight(cell []byte, separator string) (value, weight []byte, weighted bool) {
	if i := lastIndex(cell, separator); i >= 0 {
		return cell[:i], cell[i+len(separator):], true
	}
	return cell, nil, false
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
