package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// arrivingRecord says which files miss bytes, and where these are. As long as any byte is missing,
// it is a file in each of their directories, so that no process takes them for complete.
type arrivingRecord struct {
	URI      string          `json:"uri"`
	Manifest json.RawMessage `json:"manifest"` // as in its own file, with its checksum
	Lacking  []string        `json:"lacking"`  // names of files that miss bytes
	Begun    bool            `json:"begun"`    // some of their bytes may be there
	Damaged  string          `json:"damaged,omitempty"`
}

type arrivingRecordFile struct {
	SHA256 string          `json:"sha256"` // of Record without white space between tokens
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
	return disk.WriteFile(path, data)
}

// readRecord returns the record at path and its manifest; nil if there is none. If the record
// cannot be used, the error is a *DamagedError or a *NewerError.
func readRecord(path string) (*arrivingRecord, *Manifest, error) {
	if err := diskfault.At("open", path); err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r, m, err := decodeRecord(data)
	var newer *NewerError
	if errors.As(err, &newer) {
		newer.URI = path
		return nil, nil, err
	}
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

// records are the copies of one record. Each directory with files that miss bytes has one, so that
// the others still have one if a directory is lost.
type records struct {
	sync.Mutex // held while they are written; locked before Arriving.mu
	*arrivingRecord
	paths []string
	stale bool // some of them are missing or have other contents
}

// readRecords reads the copies of a record and their common manifest. As long as one copy can be
// read, it does not matter that others are missing or damaged: a copy is deleted, or a file removed
// from it, only when the files are there, so each copy names at least the files that miss bytes.
// Copies may differ because a process was killed between two of them; then every file that one of
// them names is missing bytes. A directory that does not exist has no copy, and gets none. If there
// is no record, the result is nil. If no copy can be used, the error is a *DamagedError or that of
// reading it.
func readRecords(paths []string) (rs *records, m *Manifest, err error) {
	rs = &records{}
	var faults []error
	var first string // the path of the first copy
	for _, path := range paths {
		r, of, err := readRecord(path)
		if _, e := os.Stat(filepath.Dir(path)); err == nil && errors.Is(e, os.ErrNotExist) {
			continue
		}
		rs.paths = append(rs.paths, path)
		switch {
		case err != nil:
			faults = append(faults, err)
		case r == nil:
			rs.stale = true
		case m == nil:
			rs.arrivingRecord, m, first = r, of, path
		case of.ID != m.ID:
			return nil, nil, &DamagedError{path, "it is of another generation than " + first}
		default:
			rs.stale = rs.unite(r) || rs.stale
		}
	}
	if m == nil {
		return nil, nil, errors.Join(faults...)
	}
	rs.stale = rs.stale || len(faults) > 0
	return rs, m, nil
}

// unite merges another copy into a record, and reports whether they differ.
func (r *arrivingRecord) unite(other *arrivingRecord) (differ bool) {
	differ = r.Begun != other.Begun || r.Damaged != other.Damaged || !slices.Equal(r.Lacking, other.Lacking)
	r.Begun, r.Damaged = r.Begun || other.Begun, cmp.Or(r.Damaged, other.Damaged)
	for _, name := range other.Lacking {
		if !slices.Contains(r.Lacking, name) {
			r.Lacking = append(r.Lacking, name)
		}
	}
	return differ
}

// write writes all copies.
func (rs *records) write() error {
	for _, path := range rs.paths {
		if err := rs.arrivingRecord.write(path); err != nil {
			return err
		}
	}
	rs.stale = false
	return nil
}

// note changes the record by a function that reports whether it changed anything. When nothing is
// missing any more, note deletes the record.
func (a *Arriving) note(change func(*arrivingRecord) bool) error {
	a.records.Lock()
	defer a.records.Unlock()
	done := true
	for _, f := range a.files {
		done = done && f.whole.Load()
	}
	if changed := change(a.records.arrivingRecord); done {
		return onDisk(removeRecords(a.records.paths))
	} else if changed || a.records.stale {
		a.records.stale = true // until all copies are written
		return onDisk(a.records.write())
	}
	return nil
}

// removeRecords deletes the copies of a record.
func removeRecords(paths []string) error {
	for _, path := range paths {
		if err := diskfault.At("remove", path); err != nil {
			return err
		}
		_ = os.Remove(path + ".tmp") // left by a process that was killed
		err := os.Remove(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = disk.SyncDir(filepath.Dir(path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
