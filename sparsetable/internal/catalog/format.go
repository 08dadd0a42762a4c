package catalog

import (
	"encoding/json"
	"fmt"
)

// formatVersion is the version of the format of keys and pages. A catalog of another version is not
// opened. A change that raises it must also raise recordVersion, which streams check.
const formatVersion = 2

// Format describes a table. It is fixed when the table is made.
type Format struct {
	Version   int    `json:"version"`    // 2
	TableID   string `json:"table_id"`   // says which files belong together
	ValueDim  int    `json:"value_dim"`  // of sparsetable.Layout
	StateDim  int    `json:"state_dim"`  // of sparsetable.Layout
	RowFormat string `json:"row_format"` // how a row is written, e.g. "float32"
	Hash      string `json:"hash"`       // of keys, e.g. "murmur3-fmix64"
	UnitBytes int    `json:"unit_bytes"` // of offsets and lengths in locations
	PageSlots int    `json:"page_slots"` // per page of the index
}

// check compares want with have, the table's format. Zero fields of want accept any value.
func (want Format) check(dir string, have Format) error {
	for _, f := range []struct {
		field      string
		have, want any
		unset      bool
	}{
		{"version", have.Version, formatVersion, false},
		{"table_id", have.TableID, want.TableID, want.TableID == ""},
		{"value_dim", have.ValueDim, want.ValueDim, want.ValueDim == 0},
		{"state_dim", have.StateDim, want.StateDim, want.ValueDim == 0}, // 0 is a dimension, too
		{"row_format", have.RowFormat, want.RowFormat, want.RowFormat == ""},
		{"hash", have.Hash, want.Hash, want.Hash == ""},
		{"unit_bytes", have.UnitBytes, want.UnitBytes, want.UnitBytes == 0},
		{"page_slots", have.PageSlots, want.PageSlots, want.PageSlots == 0},
	} {
		if !f.unset && f.have != f.want {
			return &FormatError{Dir: dir, Field: f.field, Have: f.have, Want: f.want}
		}
	}
	return nil
}

// validate returns an error if f lacks a field that a new table needs.
func (f Format) validate() error {
	if f.TableID == "" || f.ValueDim < 1 || f.StateDim < 0 || f.RowFormat == "" || f.Hash == "" || f.UnitBytes < 1 || f.PageSlots < 1 {
		return fmt.Errorf("catalog: a new table needs every field of its format, but some are missing: %+v", f)
	}
	return nil
}

// pages is the number of pages of an index of that many slots.
func (f Format) pages(slots uint32) int {
	return int((int64(slots) + int64(f.PageSlots) - 1) / int64(f.PageSlots))
}

func (f Format) encode() ([]byte, error) { return json.Marshal(f) }

func decodeFormat(b []byte) (f Format, err error) {
	return f, json.Unmarshal(b, &f)
}
