package fsys

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"regexp"
)

// OwnTemp matches the names of temporary files.
var OwnTemp = regexp.MustCompile(`^\..+\.[0-9a-f]{12}\.aibox\.tmp$`)

// tempSuffix tells aibox's temporary files from those of other programs.
const tempSuffix = ".aibox.tmp"

// TempName is a hidden name beside path that no other writer uses.
func TempName(path string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	dir, name := filepath.Split(path)
	return dir + "." + name + "." + hex.EncodeToString(b[:]) + tempSuffix
}
