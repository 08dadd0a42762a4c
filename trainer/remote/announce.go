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

// Announce makes the files of m that are late, with their sizes and without their bytes, at
// the paths that place returns, and the record that says so, with a copy at each of paths. Files that
// are whole stay. After an interruption, another call goes on.
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

// Unannounce takes back what Announce has done with files of m: those that the record at paths says
// lack bytes become files that Fetch has begun. Without a record it does nothing; if that is
// damaged, all files may lack some.
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

// CopyRecord makes the record at the paths to of the one at from: the files beside it are links to
// those beside the other.
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

// makeHole makes a file of zeros, with the space that it needs. Who commits what is restored makes it
// durable with everything else.
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

// AnnouncedIn returns what the record with copies at paths says; nil: there is none.
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

// Fault is why the files cannot be completed; nil: they can, as far as is known.
func (a *Announced) Fault() error {
	if a.Damaged == "" {
		return nil
	}
	return errors.New(a.Damaged)
}
