package tabledirs

import (
	"fmt"
	"os"
	"path/filepath"

	"aibox/internal/errkind"
)

// A table on SSD can be opened while its bucket files are still arriving from another machine, if
// everything else of its snapshots is there. SSDOptions.Source fetches the missing bytes that are
// read and writes them into the files, which have their names and sizes from the beginning. Missing
// bytes read as zeros. Since every bucket has a checksum, they are never taken for rows. Nothing in
// such files distinguishes them from complete ones. So while they lack anything, each of the
// directories has a file ArrivingName, in which the source keeps its state. A table with that file
// can only be opened with a source; for reading, a source that writes nothing suffices.

// ArrivingName is the name of the file whose presence says that bucket files lack bytes.
const ArrivingName = "ARRIVING.json"

// ErrArriving says that the files of a table have not all arrived from elsewhere.
var ErrArriving = errkind.New(errkind.IO, "sparsetable: the files of the table have not fully arrived from the remote directory: fetch them with `aibox restore`, or run the job that trains the table or starts from it; until then, it can be read only through its model directory")

// CheckArrived fails if bucket files in dirs lack bytes. It ignores directories that cannot be
// read; opening them reports why.
func CheckArrived(dirs []string) error {
	for _, dir := range dirs {
		path := filepath.Join(dir, ArrivingName)
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%w (%s)", ErrArriving, path)
		}
	}
	return nil
}
