package catalogcopy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	copyName  = "COPY"
	lockName  = "LOCK" // locked by readers of the copy while there is no catalog
	tmpSuffix = ".tmp"
)

// NewSuffix ends the name of a catalog that is being made from a copy, and OldSuffix that of the catalog that it
// replaces.
const NewSuffix, OldSuffix = ".new", ".old"

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	dirName    = regexp.MustCompile(`^[0-9a-f]{16}\.catalog$`)
)

// DirName is the name of the directory of a copy.
func DirName(table string) string { return table + ".catalog" }

// IsDirName reports whether a directory of this name is a copy of a table's catalog.
func IsDirName(name string) bool { return dirName.MatchString(name) }

// copyFile is the contents of the file COPY.
type copyFile struct {
	Number uint64            `json:"number"`
	Small  map[string][]byte `json:"small"`
	Tables []copiedTable     `json:"tables"`
}

// copiedTable is a sorted table of a copy.
type copiedTable struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc"`
}

func (f *copyFile) encode() ([]byte, error) {
	b, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(b, "\n%08x\n", crc32.Checksum(b, castagnoli)), nil
}

func decode(b []byte) (*copyFile, error) {
	line, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(line, castagnoli)) {
		return nil, errors.New("checksum does not match")
	}
	f := &copyFile{}
	if err := json.Unmarshal(line, f); err != nil {
		return nil, err
	}
	return f, nil
}

// readCopy reads the file COPY in a directory.
func readCopy(fs vfs.FS, dir string) (*copyFile, error) {
	path := fs.PathJoin(dir, copyName)
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	c, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return c, nil
}

// bufferBytes is the size of the buffer with which files are read and copied.
const bufferBytes = 64 << 10

// checksum returns the CRC-32C and the length of a file, and copies the file to w.
func checksum(fs vfs.FS, path string, w io.Writer) (sum uint32, size int64, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, 0, err
	}
	h := crc32.New(castagnoli)
	size, err = io.CopyBuffer(io.MultiWriter(h, w), onlyReader{f}, make([]byte, bufferBytes))
	return h.Sum32(), size, errors.Join(err, f.Close())
}

// onlyReader hides other methods, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

// writeDurably writes a file and syncs it, but not its directory.
func writeDurably(fs vfs.FS, path string, write func(io.Writer) error) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeBytes is writeDurably for bytes. It writes a copy, which the file system may scramble.
func writeBytes(fs vfs.FS, path string, b []byte) error {
	return writeDurably(fs, path, func(w io.Writer) error {
		_, err := w.Write(bytes.Clone(b))
		return err
	})
}
