package modeldir

import (
	"errors"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/trainer/modeldir/internal/outside"
)

// Incomplete is an incomplete generation: its run is still going, or ended without a model.
type Incomplete struct {
	Name string
	// Resume is what its run can be resumed from after an interruption; nil if it cannot, so that
	// the next run deletes the generation.
	Resume []byte
	// Fault says why an existing Resume cannot be read.
	Fault error
}

// Unfinished returns the incomplete generations in dir, in any order.
func Unfinished(dir string) ([]Incomplete, error) {
	all, err := Generations(dir)
	if err != nil && !errors.Is(err, ErrNoModel) {
		return nil, err
	}
	names, err := generations(dir)
	if err != nil {
		return nil, err
	}
	var out []Incomplete
	for _, name := range names {
		if slices.ContainsFunc(all, func(g Generation) bool { return g.Name == name }) {
			continue
		}
		g := Incomplete{Name: name}
		gen := filepath.Join(dir, name)
		if g.Resume, g.Fault = readResume(gen); disk.Gone(filepath.Join(gen, resumeName)) {
			g.Resume, g.Fault = nil, nil
		}
		out = append(out, g)
	}
	return out, nil
}

// Space returns the size in bytes of the files of a generation of dir, including those of its table
// in directories elsewhere.
func Space(dir, gen string) (int64, error) {
	path := filepath.Join(dir, gen)
	elsewhere, err := outside.Dirs(path)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, d := range append([]string{path}, elsewhere...) {
		bytes, _, err := disk.Usage(d)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}
