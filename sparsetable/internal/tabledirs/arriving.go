package tabledirs

import (
	"fmt"
	"os"
	"path/filepath"

	"aibox/internal/errkind"
)

// A table on SSD can be opened while its bucket files arrive from another machine, if
// everything else of its snapshots is there. SSDOptions.Source brings what is read and has
// not arrived, and writes it into the files, which have their names and sizes from the
// beginning. What is not there is zeros, which are no bucket: as every bucket has a
// checksum, no row is ever made of them. Nobody else can tell such files from complete ones,
// so as long as they lack anything there is a file called ArrivingName in each of the
// directories, in which the source keeps what it needs to know. A table with that file is
// opened with a source or not at all: for reading, one that writes nothing will do.

// ArrivingName is the name of the file that says that bucket files lack bytes.
const ArrivingName = "ARRIVING.json"

// ErrArriving says that the files of a table have not all arrived from elsewhere.
var ErrArriving = errkind.New(errkind.IO, "sparsetable: the files of the table have not all arrived from the remote directory: `aibox restore` brings them, and so does the job that trains it, or starts from it, when it runs; until then it can be read, where its model directory is named")

// CheckArrived fails if bucket files in dirs lack bytes. Why a directory cannot be read is said
// by who opens it.
func CheckArrived(dirs []string) error {
	for _, dir := range dirs {
		path := filepath.Join(dir, ArrivingName)
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%w (%s)", ErrArriving, path)
		}
	}
	return nil
}
