package modeldir

import "path/filepath"

// Unfinished returns the names of the generations in dir that are not complete: their
// runs go on, or ended without a model and will be deleted by the next run.
func Unfinished(dir string) ([]string, error) {
	all, err := Generations(dir)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, g := range all {
		known[g.Name] = true
	}
	var out []string
	for _, name := range generations(dir) {
		if !known[name] {
			out = append(out, name)
		}
	}
	return out, nil
}

// Space returns how many bytes the files of a generation of dir take, those of its table
// in directories elsewhere included.
func Space(dir, gen string) (int64, error) {
	path := filepath.Join(dir, gen)
	elsewhere, err := tableDirs(path)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, d := range append([]string{path}, elsewhere...) {
		bytes, _, err := usage(d)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}
