package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"aibox/internal/atomicfile"
	"aibox/internal/diskfault"
)

// arrivingRecord says which files lack bytes, and where they are. It is a file beside them as long
// as any byte is lacking, so that nobody takes them for whole.
type arrivingRecord struct {
	URI      string          `json:"uri"`
	Manifest json.RawMessage `json:"manifest"` // as in its own file, with its checksum
	Lacking  []string        `json:"lacking"`  // names of files
	Begun    bool            `json:"begun"`    // bytes of them may be there
	Damaged  string          `json:"damaged,omitempty"`
}

type arrivingRecordFile struct {
	SHA256 string          `json:"sha256"` // of Record without white space between its tokens
	Record json.RawMessage `json:"record"`
}

func (r *arrivingRecord) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	sum, err := compactSum(data)
	if err != nil {
		return err
	}
	if data, err = json.Marshal(arrivingRecordFile{sum, data}); err != nil {
		return err
	}
	f, err := atomicfile.Create(path, path+".tmp", os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Commit()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}

// readRecord returns the record at path and its manifest; nil if there is none. If it cannot be used,
// the error is a *DamagedError.
func readRecord(path string) (*arrivingRecord, *Manifest, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r, m, err := decodeRecord(data)
	if err != nil {
		return nil, nil, &DamagedError{path, err.Error()}
	}
	return r, m, nil
}

func decodeRecord(data []byte) (*arrivingRecord, *Manifest, error) {
	var f arrivingRecordFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, nil, err
	}
	if sum, err := compactSum(f.Record); err != nil || sum != f.SHA256 {
		return nil, nil, fmt.Errorf("its SHA-256 is not the one that was recorded")
	}
	r := new(arrivingRecord)
	if err := json.Unmarshal(f.Record, r); err != nil {
		return nil, nil, err
	}
	m, err := decode(r.Manifest)
	return r, m, err
}

// placedRecord is the record at a path.
type placedRecord struct {
	path string
	*arrivingRecord
}

// records are the records of the same files, in all directories that have them.
type records struct {
	sync.Mutex // held while they are written; locked before Arriving.mu
	list       []placedRecord
}

// readRecords reads records, and the manifest that all of them are of.
func readRecords(paths []string) (rs []placedRecord, m *Manifest, err error) {
	for _, path := range paths {
		r, of, err := readRecord(path)
		if err != nil {
			return nil, nil, err
		}
		if r == nil || m != nil && of.ID != m.ID {
			return nil, nil, &DamagedError{path, "it is gone, or of another generation than " + paths[0]}
		}
		rs, m = append(rs, placedRecord{path, r}), of
	}
	return rs, m, nil
}

// begun reports whether bytes of the files may be there.
func begun(rs []placedRecord) bool {
	return slices.ContainsFunc(rs, func(r placedRecord) bool { return r.Begun })
}

// note changes the records by a function that reports whether it did, and deletes them when
// nothing is lacking.
func (a *Arriving) note(change func(*arrivingRecord) bool) error {
	a.records.Lock()
	defer a.records.Unlock()
	done := true
	for _, f := range a.files {
		done = done && f.whole.Load()
	}
	for _, r := range a.records.list {
		var err error
		if changed := change(r.arrivingRecord); done {
			err = r.remove()
		} else if changed {
			err = r.write(r.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r placedRecord) remove() error {
	if err := diskfault.At("remove", r.path); err != nil {
		return err
	}
	_ = os.Remove(r.path + ".tmp") // of a process that was killed
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(r.path))
}

// Announce makes the files of m that are late, with their sizes and without their bytes, at
// the paths that place returns, and the record at path that says so. Files that are whole
// stay. After an interruption, another call goes on.
func (d *Directory) Announce(m *Manifest, late func(*File) bool, place func(*File) string, path string) error {
	r, old, err := readRecord(path)
	var damaged *DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return err
	}
	known := r != nil && old.ID == m.ID
	if !known {
		manifest, encodeErr := m.encode()
		if encodeErr != nil {
			return encodeErr
		}
		r = &arrivingRecord{URI: Place(d.uri), Manifest: manifest}
		for i := range m.Files {
			f := &m.Files[i]
			if info, e := os.Stat(place(f)); late(f) && (e != nil || info.Size() != f.Bytes || err != nil) {
				r.Lacking = append(r.Lacking, f.Name)
			}
		}
		if len(r.Lacking) == 0 {
			return nil
		}
		if err := r.write(path); err != nil { // before a file has its name
			return err
		}
	}
	for i := range m.Files {
		if f := &m.Files[i]; slices.Contains(r.Lacking, f.Name) {
			if err := makeHole(place(f), f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unannounce takes back what Announce has done with files of m: those that the record at path says
// lack bytes become files that Fetch has begun. Without a record it does nothing; if that is
// damaged, all files may lack some.
func Unannounce(m *Manifest, path string, place func(*File) string) error {
	r, _, err := readRecord(path)
	var damaged *DamagedError
	if r == nil && err == nil || err != nil && !errors.As(err, &damaged) {
		return err
	}
	for i := range m.Files {
		f := &m.Files[i]
		if r != nil && !slices.Contains(r.Lacking, f.Name) {
			continue
		}
		if err := os.Rename(place(f), place(f)+PartSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return placedRecord{path, r}.remove()
}

// CopyRecord makes the record at from the one at to, too: the files beside it are links to those
// beside the other.
func CopyRecord(from, to string) error {
	r, _, err := readRecord(from)
	if err != nil {
		return err
	}
	if r == nil {
		return &DamagedError{from, "it is missing"}
	}
	return r.write(to)
}

// makeHole makes a file of zeros, with the space that it needs.
func makeHole(at string, size int64) error {
	if err := diskfault.At("create", at); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil && size > 0 {
		if err = unix.Fallocate(int(f.Fd()), 0, 0, size); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			err = nil
		} else if err != nil {
			err = &os.PathError{Op: "reserve space for", Path: at, Err: err}
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// Place is the URI of a remote directory as records have it: the same for a process that runs
// in another directory.
func Place(uri string) string {
	if abs, err := filepath.Abs(uri); err == nil && !strings.Contains(uri, "://") {
		return abs
	}
	return uri
}

// Announced is what a record says.
type Announced struct {
	URI          string    // of the remote directory
	Manifest     *Manifest // of the generation or snapshot there
	Damaged      string    // why the files cannot be completed; "": they can, as far as is known
	LackingBytes int64     // of the files that are not known to be whole
}

// AnnouncedIn returns what the record at path says; nil: there is none.
func AnnouncedIn(path string) (*Announced, error) {
	r, m, err := readRecord(path)
	if r == nil {
		return nil, err
	}
	out := &Announced{URI: r.URI, Manifest: m, Damaged: r.Damaged}
	for i := range m.Files {
		if f := &m.Files[i]; slices.Contains(r.Lacking, f.Name) {
			out.LackingBytes += f.Bytes
		}
	}
	return out, nil
}

// Fault is why the files cannot be completed; nil: they can, as far as is known.
func (a *Announced) Fault() error {
	if a.Damaged == "" {
		return nil
	}
	return errors.New(a.Damaged)
}
