package parquetfile

import (
	"encoding/binary"
	"io"
)

// The library does not know the fields of statistics that say whether a minimum or a maximum is
// exact, and skips one byte too many for each: in a Thrift struct, a boolean is part of its field's
// header. If both fields are present, the extra byte is the header of the second one, so both are
// skipped. If only one is, as pyarrow writes for texts of which only the greatest or the least is
// longer than 4,096 bytes, the rest of the footer or of the page's header is misread. So statistics
// with such fields are hidden before the library sees them. Nothing needs them.
//
//	statistics   fields                   00     n bytes
//	hidden       18 length (n-2-k bytes)  00     a text, whose length takes k bytes

// HideStatistics hides the statistics of columns in a footer. It may stop early if the footer is
// damaged, as the library does.
func HideStatistics(footer []byte) {
	t := &thriftText{data: footer}
	_ = t.inStruct(func(id int64, kind byte) error { // FileMetaData
		return t.inList(id == 4, kind, func(id int64, kind byte) error { // RowGroup
			return t.inList(id == 1, kind, func(id int64, kind byte) error { // ColumnChunk
				return t.statistics(id == 3, kind, 12) // ColumnMetaData
			})
		})
	})
}

// hideInHeader hides the statistics in the header of a page, which is at the beginning of text.
func hideInHeader(text []byte) {
	t := &thriftText{data: text}
	_ = t.inStruct(func(id int64, kind byte) error {
		if id == 8 { // DataPageHeaderV2
			return t.statistics(true, kind, 8)
		}
		return t.statistics(id == 5, kind, 5) // DataPageHeader
	})
}

// thriftText is a text in Thrift's compact protocol.
type thriftText struct {
	data  []byte
	at    int
	depth int // of nested values in skip
}

// maxDepth is more than Parquet's nesting depth, so that a malicious file cannot overflow the
// stack.
const maxDepth = 50

const (
	thriftTrue, thriftFalse = 1, 2
	thriftBinary            = 8
	thriftList, thriftSet   = 9, 10
	thriftStruct            = 12
)

// inStruct calls do for each field of a struct. do must skip the field's value.
func (t *thriftText) inStruct(do func(id int64, kind byte) error) error {
	for id := int64(0); ; {
		head, err := t.next()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 != 0 {
			id += int64(head >> 4)
		} else {
			x, err := t.varint()
			if err != nil {
				return err
			}
			id = int64(x>>1) ^ -int64(x&1)
		}
		if err := do(id, head&15); err != nil {
			return err
		}
	}
}

// inList is inStruct for the structs of a list if wanted is set; it skips other values.
func (t *thriftText) inList(wanted bool, kind byte, do func(id int64, kind byte) error) error {
	if !wanted || kind != thriftList {
		return t.skip(kind)
	}
	return t.elements(func(kind byte) error {
		if kind != thriftStruct {
			return t.skip(kind)
		}
		return t.inStruct(do)
	})
}

// statistics hides the given field of a struct if wanted is set; it skips other values.
func (t *thriftText) statistics(wanted bool, kind byte, field int64) error {
	if !wanted || kind != thriftStruct {
		return t.skip(kind)
	}
	return t.inStruct(func(id int64, kind byte) error {
		if id != field || kind != thriftStruct {
			return t.skip(kind)
		}
		begin, unknown := t.at, false
		err := t.inStruct(func(_ int64, kind byte) error {
			unknown = unknown || kind == thriftTrue || kind == thriftFalse
			return t.skip(kind)
		})
		if err == nil && unknown {
			hide(t.data[begin:t.at])
		}
		return err
	})
}

// hide replaces a struct by one of the same length that has only a text.
func hide(text []byte) {
	for k := 1; k <= 5 && len(text) >= 2+k; k++ {
		length := len(text) - 2 - k
		if length>>(7*k) != 0 {
			continue
		}
		text[0] = 1<<4 | thriftBinary
		for i := range k {
			text[1+i] = byte(length>>(7*i))&0x7f | 0x80
		}
		text[k] &= 0x7f
		return
	}
}

// skip skips a value.
func (t *thriftText) skip(kind byte) (err error) {
	if t.depth++; t.depth > maxDepth {
		return io.ErrUnexpectedEOF
	}
	defer func() { t.depth-- }()
	switch kind {
	case thriftTrue, thriftFalse:
		return nil
	case 3: // 8 bits
		_, err = t.next()
	case 4, 5, 6: // integers
		_, err = t.varint()
	case 7: // a double
		err = t.pass(8)
	case thriftBinary:
		var n uint64
		if n, err = t.varint(); err == nil {
			err = t.pass(n)
		}
	case thriftList, thriftSet:
		return t.elements(t.skip)
	case thriftStruct:
		return t.inStruct(func(_ int64, kind byte) error { return t.skip(kind) })
	default: // maps, which Parquet does not have
		err = io.ErrUnexpectedEOF
	}
	return err
}

// elements calls do for each element of a list.
func (t *thriftText) elements(do func(kind byte) error) error {
	head, err := t.next()
	n := uint64(head >> 4)
	if err == nil && n == 15 {
		n, err = t.varint()
	}
	kind := head & 15
	if err == nil && (kind == thriftTrue || kind == thriftFalse) {
		return t.pass(n) // as elements of a list, booleans take a byte each
	}
	for ; err == nil && n > 0; n-- {
		err = do(kind)
	}
	return err
}

func (t *thriftText) next() (byte, error) {
	if t.at == len(t.data) {
		return 0, io.ErrUnexpectedEOF
	}
	t.at++
	return t.data[t.at-1], nil
}

func (t *thriftText) varint() (uint64, error) {
	x, n := binary.Uvarint(t.data[t.at:])
	if n <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	t.at += n
	return x, nil
}

func (t *thriftText) pass(n uint64) error {
	if n > uint64(len(t.data)-t.at) {
		return io.ErrUnexpectedEOF
	}
	t.at += int(n)
	return nil
}
