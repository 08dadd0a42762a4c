package configs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"aibox/configs/internal/yamltree"
)

// Show prints the job as a job file in which defaults are filled in, marked as such
// and explained. Loading what it prints gives the same job.
func (j *Job) Show(w io.Writer) error {
	out := bufio.NewWriter(w)
	linef := func(format string, args ...any) {
		fmt.Fprintf(out, format+"\n", args...) //nolint:errcheck // out keeps it
	}
	linef("# Job %s with every default filled in. Keys without effect in this job are", yamltree.Text(j.Name))
	linef("# left out; docs/job-file.md has all of them. The date is %s.", j.DateText())
	if j.Training.WarmStart == WarmStartLatest && j.modelDir != nil {
		linef("# In training.warm_start, latest does not find models of earlier dates by this file,")
		linef("# since the date in output.model_dir is filled in.")
	}
	table.Show(out, j, j.isGiven)
	return out.Flush()
}

// isGiven reports whether a key counts as given: all of a saved job does.
func (j *Job) isGiven(path string) bool { return j.given == nil || j.given[path] }

// Differences returns the paths of the keys in which two jobs differ, sorted. Keys
// without effect, and how a value was written, do not count.
func (j *Job) Differences(other *Job) ([]string, error) { return j.differences(other, false) }

// Changes returns those of the Differences whose keys have an effect in both jobs.
func (j *Job) Changes(other *Job) ([]string, error) { return j.differences(other, true) }

func (j *Job) differences(other *Job, inBoth bool) ([]string, error) {
	a, err := j.values()
	if err != nil {
		return nil, err
	}
	b, err := other.values()
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, values := range []map[string]string{a, b} {
		for p := range values {
			before, in := a[p]
			after, too := b[p]
			if in && too && before != after || in != too && !inBoth {
				paths[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(paths)), nil
}

// values returns the job's values as text, by path. It prints the job and reads it back
// first, so that all jobs with the same values have the same ones.
func (j *Job) values() (map[string]string, error) {
	var shown bytes.Buffer
	if err := j.Show(&shown); err != nil {
		return nil, err
	}
	same, err := Parse(j.file, shown.Bytes(), LoadOptions{Saved: true})
	if err != nil {
		return nil, err
	}
	return table.Values(same), nil
}
