package configs

import (
	"fmt"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Edited returns the text of a job file with the overrides opts.Set written into it: loading the
// result gives the same job as loading text with the overrides. All other lines stay unchanged,
// comments included. It fails if an override is faulty, and if it does not know how to write one
// into this file, for example because the file's value is an alias.
func Edited(name string, text []byte, opts LoadOptions) ([]byte, error) {
	want, err := Parse(name, text, opts)
	if err != nil {
		return nil, err
	}
	sets := opts.Set
	opts.Set = nil
	edited := yamltree.Normalize(text)
	for _, set := range sets {
		path, value, _ := strings.Cut(set, "=") // it has both, or Parse had failed
		root, faults := yamltree.Parse(edited, yamltree.Place{})
		if len(faults) > 0 {
			return nil, fmt.Errorf("%s cannot be written into %s: %w", set, name, FaultsError(newFaults("", faults)))
		}
		if edited, err = yamltree.Edit(edited, root, strings.TrimSpace(path), strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("%s cannot be written into %s: %w", set, name, err)
		}
	}
	got, err := Parse(name, []byte(edited), opts)
	if err != nil {
		return nil, fmt.Errorf("overrides cannot be written into %s: %w", name, err)
	}
	differing, err := want.Differences(got)
	if err == nil && len(differing) > 0 {
		err = fmt.Errorf("overrides cannot be written into %s: %s would have other values than with --set", name, strings.Join(differing, ", "))
	}
	return []byte(edited), err
}
