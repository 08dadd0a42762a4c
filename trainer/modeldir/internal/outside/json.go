package outside

import (
	"encoding/json"
	"errors"
	"io/fs"

	"aibox/internal/disk"
	"aibox/trainer/modeldir/internal/faults"
)

// readJSON reads a file into v, if it exists.
func readJSON(path string, v any) (found bool, err error) {
	data, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, faults.Damaged(path, err.Error())
	}
	return true, nil
}

// writeJSON replaces a file by v, indented.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(path, append(data, '\n'))
}
