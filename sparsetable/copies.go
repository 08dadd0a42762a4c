package sparsetable

import (
	"context"
	"fmt"
	"io"

	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/transfer"
)

// CloneInfo says what Clone did.
type CloneInfo = transfer.CloneInfo

// ErrNotCloneable: Clone cannot make a table of this one. Import can.
var ErrNotCloneable = transfer.ErrNotCloneable

// Clone makes, in the directories of to, a table of its own that holds what the
// snapshot from.SnapshotID (0: the newest) of the table in the directories of from
// holds. Only the index is written, about 2 % of the rows' bytes: bucket and delta files never
// change once a snapshot has them, so the new table gets them as hard links. From then on
// either table can be changed, compacted, read or deleted, by any process, without an
// effect on the other: the file system counts the links, and frees a file when no
// table has it any more.
//
// Each file is linked into the first directory of to where that is possible, that is,
// which is on the same file system, and copied to the one with the same place in the
// list where there is none. Files that have not all arrived (from.SSD.Source) can only be linked:
// otherwise the error is ErrArriving. The catalog is written last, so there is no table in to
// before everything it needs is durable. Clone holds the earlier table for reading; it
// changes nothing there. Both tables are of KindSSD.
//
// Errors: ErrNotCloneable for a table of an older version, whose keys have no hash of their
// own; ErrNoSnapshot, ErrInUse, ErrFiles, ErrNoSpace, *CorruptionError. After an error,
// files may be left in the directories of to.
func Clone(ctx context.Context, from, to Options) (CloneInfo, error) {
	from.ensureDefaults()
	to.ensureDefaults()
	if from.Kind != KindSSD || to.Kind != KindSSD {
		return CloneInfo{}, fmt.Errorf("%w: only tables of kind %q can be", ErrNotCloneable, KindSSD)
	}
	return transfer.Clone(ctx, from.onSSD().Directories(), to.onSSD().Directories())
}

// CanLink reports whether a file in the directory from can be linked into the directory to. It
// tries, with a file of its own.
func CanLink(from, to string) bool { return transfer.CanLink(from, to) }

// PortableFile is a file of a snapshot.
type PortableFile = transfer.File

// OpenFile is a file that is open for reading.
type OpenFile = transfer.OpenFile

// SnapshotFiles are the files of a snapshot of an open table. They stay as they are until
// Release, whatever happens to the table meanwhile, the snapshot's being dropped included.
type SnapshotFiles = transfer.SnapshotFiles

// PortableFiles returns the files that hold the rows of the snapshot o.SnapshotID (0: the
// newest) of the table in the directories of o. The caller holds the table (Hold).
func PortableFiles(o Options) ([]PortableFile, error) {
	o.ensureDefaults()
	if o.Kind != KindSSD {
		return transfer.FileAt(memory.SnapshotPath(o.Dir, o.SnapshotID))
	}
	return transfer.Files(o.onSSD().Directories())
}

// WriteIndex writes the index of the snapshot o.SnapshotID (0: the newest) of a table on
// SSD. The caller holds the table (Hold).
func WriteIndex(o Options, w io.Writer) error {
	o.ensureDefaults()
	return transfer.WriteIndex(o.onSSD().Directories(), w)
}

// RestoreIndex makes a table on SSD, in the directories of o, of the files of snapshots,
// which are there, and of their indexes. Of each index the names of its files are given: the
// first has all of it, and each other one what changed after the one before. A catalog that
// an interrupted call left behind is replaced. After it the table has these snapshots, with
// the numbers that they had.
func RestoreIndex(ctx context.Context, o Options, indexes ...[]string) ([]SnapshotInfo, error) {
	o.ensureDefaults()
	return transfer.RestoreIndex(ctx, o.onSSD().Directories(), indexes...)
}

// SpreadFiles says for each of the names of a snapshot's files, of these sizes, in which of
// n directories it is put: bucket files where the least is, and delta files each where it was,
// as far as there are as many. The same files are put into the same directories each time.
func SpreadFiles(names []string, bytes []int64, n int) []int {
	return transfer.SpreadFiles(names, bytes, n)
}
