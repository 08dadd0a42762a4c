package trainer

import (
	"slices"

	"aibox/configs"
)

// spacesOf returns the embedding space of each field of a job.
func spacesOf(job *configs.Job, fields []string) []string {
	spaces := slices.Clone(fields)
	for _, c := range job.SparseColumns() {
		if i := slices.Index(fields, c.Name); i >= 0 {
			spaces[i] = or(c.Space, c.Name)
		}
	}
	return spaces
}
