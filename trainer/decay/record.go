package decay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

// Record is a History as stored with a model: JSON without spaces, which can be compared. "" stands
// for rows that do not decay.
type Record string

// Record returns the record of the timeline's history, "" for a nil timeline.
func (t *Timeline) Record() Record {
	if t == nil {
		return ""
	}
	text, err := json.Marshal(&t.history)
	if err != nil {
		panic(err) // plain fields, and rates that NewTimeline has checked
	}
	return Record(text)
}

// Timeline returns the timeline of the recorded history, nil if rows do not decay.
func (r Record) Timeline() (*Timeline, error) {
	if r == "" {
		return nil, nil
	}
	t := new(Timeline)
	return t, json.Unmarshal([]byte(r), t)
}

// MarshalJSON writes the history.
func (r Record) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// UnmarshalJSON reads it.
func (r *Record) UnmarshalJSON(b []byte) error {
	var text bytes.Buffer
	err := json.Compact(&text, b)
	*r = Record(text.String())
	return err
}

// Digest combines rows, the digest of a table's stored words, with how its rows decay.
func (r Record) Digest(rows [32]byte) [32]byte {
	if r == "" {
		return rows
	}
	return sha256.Sum256(append(rows[:], r...))
}
