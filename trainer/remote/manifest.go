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

// FormatVersion is the version of the format of manifests, and of the objects. A manifest of a
// newer version is refused, and as long as there is one, no object is deleted. Manifests of all
// versions have the fields of compressed.
const FormatVersion = 2

// plainVersion is the version of manifests that are not compressed.
const plainVersion = 1

// Directories in a remote directory.
const (
	generationsDir = "generations"
	snapshotsDir   = "snapshots"
	priorityDir    = "priority"
	pendingDir     = "pending"
	objectsDir     = "objects"
)

// Kind is what a manifest is of.
type Kind int

// The kinds. Manifests of each have a directory and numbers of their own.
const (
	Generation   Kind = iota // a model
	Snapshot                 // of a run, from which another machine can go on
	PrioritySave             // rows of a run that were saved between two of its snapshots (CPR, §4.2)
	kinds
)

var kindDirs = [kinds]string{generationsDir, snapshotsDir, priorityDir}

// Manifest says what a generation of a model consists of, and needs no other file to say
// it.
type Manifest struct {
	FormatVersion int    `json:"format_version"`
	ID            string `json:"id"`     // random
	Number        int    `json:"number"` // of the generation: URI@N
	AiboxVersion  string `json:"aibox_version"`
	PublishedAt   string `json:"published_at"` // when publishing began; in UTC, as RFC 3339 has it

	Job      string `json:"job"`      // its name
	Owner    string `json:"owner"`    // machine and model directory that it comes from
	Identity string `json:"identity"` // equal for equal models
	// Snapshot and Priority say which Kind it is. Run is equal for the snapshots of equal
	// runs, and Step is the optimizer step of the run up to which it has its updates.
	Snapshot bool   `json:"snapshot,omitempty"`
	Priority bool   `json:"priority,omitempty"`
	Run      string `json:"run,omitempty"`
	Step     int64  `json:"step,omitempty"`
	// Parent is the generation from which the model was made, if this directory had it.
	Parent *Parent `json:"parent,omitempty"`

	Model json.RawMessage `json:"model"` // MODEL.json; of what a run has saved, what RESUME.json says
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
	// Unique says that no other file ever had this name: of files of the same name, the
	// longer one begins with the bytes of the shorter one.
	Unique bool `json:"unique,omitempty"`
	// Private says that nobody but its owner may read the file.
	Private bool   `json:"private,omitempty"`
	Parts   []Part `json:"parts"`
}

// perm are the permissions of a file.
func perm(private bool) fs.FileMode {
	if private {
		return 0o600
	}
	return 0o644
}

// Part is a part of a file, in the order of the parts. Each is an object of its own.
type Part struct {
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files.
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

// Kind is what the manifest is of.
func (m *Manifest) Kind() Kind {
	switch {
	case m.Snapshot:
		return Snapshot
	case m.Priority:
		return PrioritySave
	}
	return Generation
}

// committedName is the file that makes the generation exist.
func (m *Manifest) committedName() string {
	return path.Join(kindDirs[m.Kind()], fmt.Sprintf("%06d-%s.json", m.Number, m.ID))
}

// pendingName is the file that stands for the generation while it is published.
func (m *Manifest) pendingName() string { return path.Join(pendingDir, m.ID+".json") }

// validate makes sure that a manifest cannot make a reader write outside of its
// directories, or read what is none of its objects.
func (m *Manifest) validate() error {
	if !isID(m.ID) || m.Number < 1 {
		return fmt.Errorf("its id %q or its number %d is out of range", m.ID, m.Number)
	}
	for i := range m.Files {
		f := &m.Files[i]
		if f.Name == "" || path.Clean("/"+f.Name) != "/"+f.Name {
			return fmt.Errorf("%q is no name of a file", f.Name)
		}
		sum := int64(0)
		for _, p := range f.Parts {
			if !objectName.MatchString(p.Object) || p.Bytes < 0 || p.Bytes > f.Bytes-sum {
				return fmt.Errorf("%s: %q is no name of an object, or its size %d is out of range", f.Name, p.Object, p.Bytes)
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
	hiddenObject  = regexp.MustCompile(`^\.([0-9a-f]{16})-[0-9]{6,}\..*tmp$`) // a Put that was killed
)

func isID(s string) bool { return idPattern.MatchString(s) }

// newID returns a random id, so that no two manifests or objects ever have one name.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// objectOf is the name of the n-th object that the publication with an id uploads.
func objectOf(id string, n int) string { return fmt.Sprintf("%s-%06d", id, n) }

// idOf returns the id of the publication that has uploaded an object, "" if it is no name
// of an object.
func idOf(object string) string {
	if m := objectName.FindStringSubmatch(object); m != nil {
		return m[1]
	}
	if m := hiddenObject.FindStringSubmatch(object); m != nil {
		return m[1]
	}
	return ""
}

// numberOf returns number and id by the name of a file in generations, 0 if it is none.
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

// SplitURI splits the name of a generation, URI@N, and returns 0 for a URI alone.
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
