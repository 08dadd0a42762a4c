package runstate

import (
	"encoding/json"
	"time"

	"aibox/sparsetable"
)

// PrioritySave is the contents of the manifest of a priority save.
type PrioritySave struct {
	Format  int             `json:"format"` // this and the next two as in Record
	Version string          `json:"aibox_version"`
	Run     json.RawMessage `json:"run"`

	Time   time.Time          `json:"time"`
	Step   int64              `json:"step"`
	Kind   string             `json:"kind"` // of snapshots.priority
	Rows   int64              `json:"rows"`
	Layout sparsetable.Layout `json:"layout"`
}
