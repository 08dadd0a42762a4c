package remote

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// FormatVersion is the version of the format of manifests and objects. A manifest of a newer
// version is refused, and while there is one, no object is deleted. Manifests of all versions have
// the fields of compressed.
const FormatVersion = 2

// plainVersion is the version of uncompressed manifests.
const plainVersion = 1

// Directories in a remote directory.
const (
	generationsDir = "generations"
	snapshotsDir   = "snapshots"
	priorityDir    = "priority"
	pendingDir     = "pending"
	objectsDir     = "objects"
)

// Kind says what a manifest describes.
type Kind int

// Kinds of manifests. Each has its own directory and its own numbers.
const (
	Generation   Kind = iota // a model
	Snapshot                 // of a run, from which another machine can resume it
	PrioritySave             // rows of a run that were saved between two of its snapshots (CPR, §4.2)
	kinds
)

var kindDirs = [kinds]string{generationsDir, snapshotsDir, priorityDir}

// Manifest describes a generation of a model completely, without other files.
type Manifest struct {
	FormatVersion int    `json:"format_version"`
	ID            string `json:"id"`     // random
	Number        int    `json:"number"` // of the generation: URI@N
	AiboxVersion  string `json:"aibox_version"`
	PublishedAt   string `json:"published_at"` // when publishing began; in UTC, as in RFC 3339

	Job      string `json:"job"`      // its name
	Owner    string `json:"owner"`    // machine and model directory that it comes from
	Identity string `json:"identity"` // equal for equal models
	// Snapshot and Priority determine the Kind. Run is equal for the snapshots of equal runs. Step
	// is the last optimizer step of the run that it contains.
	Snapshot bool   `json:"snapshot,omitempty"`
	Priority bool   `json:"priority,omitempty"`
	Run      string `json:"run,omitempty"`
	Step     int64  `json:"step,omitempty"`
	// Parent is the generation from which the model was made, if this directory had it.
	Parent *Parent `json:"parent,omitempty"`

	Model json.RawMessage `json:"model"` // MODEL.json; for what a run has saved, the contents of RESUME.json
	Files []File          `json:"files"`
}

// Parent names an earlier generation.
type Parent struct {
	ID     string `json:"id"`
	Number int    `json:"number"`
}

// File is one of the files of a generation.
type File struct {
	Name  string `json:"name"` // with slashes
	Bytes int64  `json:"bytes"`
	// Unique says that no other file ever had this name: of two files with the same name, the
	// longer one begins with the bytes of the shorter one.
	Unique bool `json:"unique,omitempty"`
	// Private says that only its owner may read the file.
	Private bool   `json:"private,omitempty"`
	Parts   []Part `json:"parts"`
}

// perm returns the permissions of a file.
func perm(private bool) fs.FileMode {
	if private {
		return 0o600
	}
	return 0o644
}

// Part is a part of a file. Each is an object of its own.
type Part struct {
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() int64 {
	total := int64(0)
	for i := range m.Files {
		total += m.Files[i].Bytes
	}
	return total
}

// objects calls fn for each object of the manifest.
func (m *Manifest) objects(fn func(p *Part)) {
	for i := range m.Files {
		for j := range m.Files[i].Parts {
			fn(&m.Files[i].Parts[j])
		}
	}
}

// Kind returns what the manifest describes.
func (m *Manifest) Kind() Kind {
	switch {
	case m.Snapshot:
		return Snapshot
	case m.Priority:
		return PrioritySave
	}
	return Generation
}

// committedName returns the name of the file whose existence makes the generation exist.
func (m *Manifest) committedName() string {
	return path.Join(kindDirs[m.Kind()], fmt.Sprintf("%06d-%s.json", m.Number, m.ID))
}

// pendingName returns the name of the manifest's file while the generation is being published.
func (m *Manifest) pendingName() string { return path.Join(pendingDir, m.ID+".json") }

// validate makes sure that a manifest cannot make a reader write outside its directories, or read
// anything but objects.
func (m *Manifest) validate() error {
	if !isID(m.ID) || m.Number < 1 {
		return fmt.Errorf("its id %q or its number %d is out of range", m.ID, m.Number)
	}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Name == "" || path.Clean("/"+f.Name) != "/"+f.Name {
			return fmt.Errorf("%q is not a valid name for a file", f.Name)
		}
		sum := int64(0)
		for _, p := range f.Parts {
			if !objectName.MatchString(p.Object) || p.Bytes < 0 || p.Bytes > f.Bytes-sum {
				return fmt.Errorf("%s: %q is not a valid name for an object, or its size %d is out of range", f.Name, p.Object, p.Bytes)
			}
			sum += p.Bytes
		}
		if sum != f.Bytes {
			return fmt.Errorf("%s: its parts have %d bytes, but the file has %d", f.Name, sum, f.Bytes)
		}
	}
	return nil
}

var (
	idPattern     = regexp.MustCompile(`^[0-9a-f]{16}$`)
	committedFile = regexp.MustCompile(`^([0-9]{6,})-([0-9a-f]{16})\.json$`)
	objectName    = regexp.MustCompile(`^([0-9a-f]{16})-[0-9]{6,}$`)
	hiddenObject  = regexp.MustCompile(`^\.([0-9a-f]{16})-[0-9]{6,}\..*tmp$`) // left by a killed Put
)

func isID(s string) bool { return idPattern.MatchString(s) }

// newID returns a random ID, so that no two manifests or objects ever have the same name.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// objectOf returns the name of the n-th object that the publication with the given ID uploads.
func objectOf(id string, n int) string { return fmt.Sprintf("%s-%06d", id, n) }

// idOf returns the ID of the publication that has uploaded an object, "" if the name is not one of
// an object.
func idOf(object string) string {
	if m := objectName.FindStringSubmatch(object); m != nil {
		return m[1]
	}
	if m := hiddenObject.FindStringSubmatch(object); m != nil {
		return m[1]
	}
	return ""
}

// numberOf returns number and ID from the name of a file in generations; the number is 0 for other
// names.
func numberOf(name string) (number int, id string) {
	m := committedFile.FindStringSubmatch(name)
	if m == nil {
		return 0, ""
	}
	number, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, ""
	}
	return number, m[2]
}

// SplitURI splits the name of a generation, URI@N. The number is 0 for a URI alone.
func SplitURI(name string) (uri string, number int) {
	i := strings.LastIndexByte(name, '@')
	if i <= 0 || strings.Contains(name[i:], "/") {
		return name, 0
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil || n < 1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, 0
	}
	return name[:i], n
}
