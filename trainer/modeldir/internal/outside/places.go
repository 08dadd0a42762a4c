package outside

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"aibox/trainer/modeldir/internal/faults"
)

// PlacesName is the file in the generation that lists the directories.
const PlacesName = "table-dirs.json"

type places struct {
	Dirs []string `json:"dirs"` // absolute
	// LeftOut are directories that the table had until its run went on without them because their
	// disks had failed. Nothing needs the files that remain there.
	LeftOut []string `json:"left_out,omitempty"`
}

// placeName matches the names that Place gives to directories: MODEL-gen-000002-1f3a9c2e.
var placeName = regexp.MustCompile(`-(gen-[0-9]{6,})-[0-9a-f]{8}$`)

// ModelName returns the name of the model directory from the name of a directory that Place has
// made. ok is false for other names.
func ModelName(name string) (model string, ok bool) {
	at := placeName.FindStringIndex(name)
	if at == nil {
		return "", false
	}
	return name[:at[0]], true
}

// Dirs returns the directories of the table of the generation in gen, nil if the
// table is in the generation itself.
func Dirs(gen string) ([]string, error) {
	p, err := readPlaces(gen)
	return p.Dirs, err
}

// AllDirs returns the directories that are deleted with the generation in gen: those of its table,
// and those that the table had before.
func AllDirs(gen string) ([]string, error) {
	p, err := readPlaces(gen)
	return slices.Concat(p.Dirs, p.LeftOut), err
}

func readPlaces(gen string) (p places, err error) {
	path := filepath.Join(gen, PlacesName)
	if found, err := readJSON(path, &p); err != nil || !found {
		return places{}, err
	}
	if len(p.Dirs) == 0 {
		return places{}, faults.Damaged(path, "it names no directory")
	}
	for _, dir := range slices.Concat(p.Dirs, p.LeftOut) {
		// Only a directory that Place has named may be deleted, whatever the file says.
		m := placeName.FindStringSubmatch(filepath.Base(dir))
		if !filepath.IsAbs(dir) || dir != filepath.Clean(dir) || m == nil || m[1] != filepath.Base(gen) {
			return places{}, faults.Damaged(path, fmt.Sprintf("%q is not a directory of a table of this generation", dir))
		}
	}
	return p, nil
}
