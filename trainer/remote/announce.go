package remote

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// Announce writes the record of which late files of m miss bytes, a copy at each of paths. Then it
// makes these files, at their full sizes but without their bytes, at the paths that place returns.
// Complete files stay. After an interruption, another call continues.
func (d *Directory) Announce(m *Manifest, late func(*File) bool, place func(*File) string, paths ...string) error {
	rs, old, err := readRecords(paths)
	var damaged *DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return err
	}
	if rs == nil || old.ID != m.ID {
		manifest, encodeErr := m.encode()
		if encodeErr != nil {
			return encodeErr
		}
		rs = &records{arrivingRecord: &arrivingRecord{URI: Place(d.uri), Manifest: manifest}, paths: paths, stale: true}
		for i := range m.Files {
			f := &m.Files[i]
			if info, e := os.Stat(place(f)); late(f) && (e != nil || info.Size() != f.Bytes || err != nil) {
				rs.Lacking = append(rs.Lacking, f.Name)
			}
		}
		if len(rs.Lacking) == 0 {
			return nil
		}
	}
	if rs.stale {
		if err := rs.write(); err != nil { // before a file has its name
			return err
		}
	}
	for i := range m.Files {
		if f := &m.Files[i]; slices.Contains(rs.Lacking, f.Name) {
			if err := makeHole(place(f), f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unannounce undoes what Announce has done with files of m: those that miss bytes according to the
// record at paths become files that Fetch has begun. Without a record it does nothing. If the
// record is damaged, all files may miss bytes.
func Unannounce(m *Manifest, place func(*File) string, paths ...string) error {
	rs, _, err := readRecords(paths)
	var damaged *DamagedError
	if rs == nil && err == nil || err != nil && !errors.As(err, &damaged) {
		return err
	}
	for i := range m.Files {
		f := &m.Files[i]
		if rs != nil && !slices.Contains(rs.Lacking, f.Name) {
			continue
		}
		if err := os.Rename(place(f), place(f)+PartSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return removeRecords(paths)
}

// CopyRecord copies the record at from to the paths to. The files beside the copy are links to
// those beside the original.
func CopyRecord(from, to []string) error {
	rs, _, err := readRecords(from)
	if err != nil {
		return err
	}
	if rs == nil {
		return &DamagedError{strings.Join(from, ", "), "it is missing"}
	}
	rs.paths = to
	return rs.write()
}

// makeHole makes a file of zeros and reserves its space. Whoever commits the restored files makes
// it durable with everything else.
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
	return errors.Join(err, f.Close())
}

// Place returns the URI of a remote directory as it is in records: a local path does not depend on
// the working directory.
func Place(uri string) string {
	if abs, err := filepath.Abs(uri); err == nil && !strings.Contains(uri, "://") {
		return abs
	}
	return uri
}

// Announced is the content of a record.
type Announced struct {
	URI          string    // of the remote directory
	Manifest     *Manifest // of the generation or snapshot there
	Damaged      string    // why the files cannot be completed; "" if nothing is known to prevent that
	LackingBytes int64     // of the files that are not known to be complete
}

// AnnouncedIn returns the content of the record with copies at paths; nil if there is none.
func AnnouncedIn(paths ...string) (*Announced, error) {
	r, m, err := readRecords(paths)
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

// Fault returns why the files cannot be completed; nil if nothing is known to prevent that.
func (a *Announced) Fault() error {
	if a.Damaged == "" {
		return nil
	}
	return errors.New(a.Damaged)
}
