package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"aibox/internal/humanize"
	"aibox/reader/source"
)

// Files are the files that a run reads.
type Files struct {
	Train *source.Listing `json:"train"`
	Eval  *source.Listing `json:"eval,omitempty"` // nil without data.eval
}

// named are the files given by one key of the job file.
type named struct {
	key   string
	files []source.File
}

// each returns the files for training, and then those for evaluation.
func (f Files) each() [2]named {
	all := [2]named{{key: "data.train"}, {key: "data.eval"}}
	for i, l := range []*source.Listing{f.Train, f.Eval} {
		if l != nil {
			all[i].files = l.Files
		}
	}
	return all
}

// Differences describes how the files differ from those of an earlier run.
func (f Files) Differences(earlier Files) (reasons []string) {
	before := earlier.each()
	for i, now := range f.each() {
		if err := source.SameFiles(before[i].files, now.files); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", now.key, err))
		}
	}
	return reasons
}

// Hash identifies the files by their names, lengths and times. It does not depend on the time zone
// of the process, which cron and a shell may set differently.
func (f Files) Hash() string {
	var files [2][]source.File
	for i, l := range f.each() {
		files[i] = slices.Clone(l.files)
		for k := range files[i] {
			files[i][k].ModTime = files[i][k].ModTime.UTC()
		}
	}
	data, err := json.Marshal(files)
	if err != nil {
		panic(err) // plain fields
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Warnings describes files that look wrong: those that are read more often than the user may
// expect, since patterns may overlap, and compressed files without content.
func (f Files) Warnings() (warnings []string) {
	// warn warns of the files for which like is true, with their key, their number and one of them.
	warn := func(l named, like func(source.File) bool, format string) {
		files := slices.DeleteFunc(slices.Clone(l.files), func(f source.File) bool { return !like(f) })
		if len(files) > 0 {
			warnings = append(warnings, fmt.Sprintf(format, l.key, humanize.Count(int64(len(files)), "file"), files[0].URI))
		}
	}
	all, seen := f.each(), map[string]bool{}
	read := func(f source.File) bool { return seen[f.URI] }
	again := func(f source.File) bool {
		defer func() { seen[f.URI] = true }()
		return read(f)
	}
	warn(all[0], again, "%s names %s more than once, such as %s: their examples are trained on each time")
	warn(all[1], read, "%s has %s of data.train, such as %s: on examples that it was trained on, a model looks better than it is")
	for i, l := range []*source.Listing{f.Train, f.Eval} {
		if text := l.WithoutBytes(all[i].key); text != "" {
			warnings = append(warnings, text)
		}
	}
	return warnings
}
