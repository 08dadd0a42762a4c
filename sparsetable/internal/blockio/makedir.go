package blockio

import (
	"errors"
	"os"
	"path/filepath"
)

// MakeDir makes dir and those of its parents that are missing, and makes their names
// durable.
func MakeDir(dir string) error {
	var made []string // the innermost first
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, name := range made {
		parent, err := os.Open(filepath.Dir(name))
		if err != nil {
			return err
		}
		if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
			return err
		}
	}
	return nil
}
