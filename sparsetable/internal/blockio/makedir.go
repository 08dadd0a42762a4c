package blockio

import (
	"os"
	"path/filepath"

	"aibox/internal/disk"
)

// MakeDir makes dir and its missing parents, and makes their names durable.
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
		if err := disk.SyncDir(filepath.Dir(name)); err != nil {
			return err
		}
	}
	return nil
}
