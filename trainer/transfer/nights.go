package transfer

import (
	"encoding/json"
	"slices"

	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// bestFirst sorts generations of one job, at least one, the newest first. If the newest is of a job
// that has one model directory per night, the model of the latest night comes first, as such a job
// chooses among its directories.
func bestFirst(all []*remote.Manifest) {
	newest := slices.MaxFunc(all, func(a, b *remote.Manifest) int { return a.Number - b.Number })
	var m modeldir.Manifest
	if json.Unmarshal(newest.Model, &m) == nil && m.NightDir {
		remote.ByNight(all, nightOf)
	}
}

// nightOf returns the night of the model of a generation; "" if it has none, or cannot be read.
func nightOf(m *remote.Manifest) string {
	var model modeldir.Manifest
	if json.Unmarshal(m.Model, &model) != nil {
		return ""
	}
	return model.OfNight()
}
