package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"aibox/internal/errkind"
)

var (
	// ErrNotExist says that there is no catalog in the directory (Options.MustExist).
	ErrNotExist = errors.New("catalog: there is no catalog in the directory")
	// ErrNoSnapshot says that no snapshot of that id is kept.
	ErrNoSnapshot = errors.New("catalog: there is no such snapshot")
	// ErrReadOnly says that the catalog was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("catalog: it is open for reading only")
	// ErrClosed says that the catalog was closed.
	ErrClosed = errors.New("catalog: it is closed")
	// ErrFailed says that a write to the database failed and that it is unknown what is on disk.
	// Only a new process can find out. The error that wraps ErrFailed names the directory and also
	// wraps the cause.
	ErrFailed = errors.New("catalog: a write failed midway: restart to continue from the last committed snapshot")
)

// FormatError says that the table has another format than requested.
type FormatError struct {
	Dir   string
	Field string // of Format, as in JSON
	Have  any    // the table's value
	Want  any    // the requested value
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("catalog: the table in %s has %s %v, but %v was asked for: open the table with the value that it has, or make a new table elsewhere", e.Dir, e.Field, e.Have, e.Want)
}

// CorruptionError says that the contents of the catalog are damaged.
type CorruptionError struct {
	Dir  string // the catalog's, or the damaged file in it
	What string // the damaged part; "" if Dir is the file
	Err  error
}

func (e *CorruptionError) Error() string {
	if e.What == "" {
		return fmt.Sprintf("catalog: %s is damaged: %v", e.Dir, e.Err)
	}
	return fmt.Sprintf("catalog: %s is damaged in %s: %v", e.Dir, e.What, e.Err)
}

func (e *CorruptionError) Unwrap() error { return e.Err }

func (c *Catalog) corrupt(what string, format string, args ...any) error {
	return corruption(c.dir, what, fmt.Errorf(format, args...))
}

// corruption reports that a part of what is in dir is damaged, unless err says that a newer program
// wrote it.
func corruption(dir, what string, err error) error {
	if errors.Is(err, errkind.ErrNewer) {
		return fmt.Errorf("sparsetable: %s: %w", dir, err)
	}
	return &CorruptionError{Dir: dir, What: what, Err: err}
}

// wrap adds what failed, and makes a *CorruptionError of damage that Pebble found.
func (c *Catalog) wrap(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFailed), errors.As(err, new(*FormatError)), errors.Is(err, errkind.ErrNewer):
		return err
	case errors.As(err, new(*CorruptionError)):
		return textError{strings.ReplaceAll(err.Error(), "\n", "; "), err}
	case errors.Is(err, ErrNotExist):
		return err
	case errors.Is(err, pebble.ErrDBNotPristine):
		// Without the marker Pebble assumes that the database is new.
		return c.corrupt("its database", "there is no marker.format-version.*, which says what Pebble's format is: restore the directory from a copy")
	case pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist), strings.Contains(err.Error(), "object size mismatch"):
		// The manifest names a file that does not exist or has another length: the file or the
		// manifest is damaged.
		return c.damage(err)
	}
	return fmt.Errorf("catalog: %s: %s: %w", c.dir, doing, err)
}

// textError replaces the text of an error.
type textError struct {
	text string
	err  error
}

func (e textError) Error() string { return e.text }
func (e textError) Unwrap() error { return e.err }

var (
	// pebblePrefix matches the parts of Pebble that passed the error on, at the beginning of its
	// text.
	pebblePrefix = regexp.MustCompile(`^(pebble(/table)?: |L[0-9]: |backing file [0-9]+ error: |file [0-9]+: |[0-9]{6,}: )+`)
	// pebbleFile matches how Pebble names a file; one of its groups is the name.
	pebbleFile = regexp.MustCompile(`([0-9]{6,}\.sst)|\b(MANIFEST-[0-9]{6,})|\b(?:L[0-9]: |file |table )([0-9]{6,})`)
	pebbleWord = strings.NewReplacer(" (type sstable) unknown to the objstorage provider", "")
)

// damage converts an error of Pebble about damage into a *CorruptionError of one line, which names
// the file if only one is affected.
func (c *Catalog) damage(err error) error {
	lines := strings.Split(strings.TrimSuffix(err.Error(), "\n<corruption detail carrier>"), "\n")
	name := damagedFile(err, lines[0])
	text := pebblePrefix.ReplaceAllString(pebbleWord.Replace(lines[0]), "")
	bad := &CorruptionError{Dir: c.dir, What: "its database"}
	if n := len(lines) - 1; n > 0 {
		// It is more likely that the manifest is damaged than that many files are.
		text = fmt.Sprintf("%s: %s, and %d other files have the same problem", name, text, n)
	} else if name != "" {
		bad.Dir, bad.What = filepath.Join(c.dir, name), ""
	}
	bad.Err = textError{text, err}
	return bad
}

// damagedFile is the base name of the file that err is about, or "" if that is unknown. text is the
// text of err.
func damagedFile(err error, text string) string {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Path != "" {
		return filepath.Base(info.Path)
	}
	m := pebbleFile.FindStringSubmatch(text)
	switch {
	case m == nil:
		return ""
	case m[3] != "":
		return m[3] + ".sst"
	}
	return m[1] + m[2]
}
