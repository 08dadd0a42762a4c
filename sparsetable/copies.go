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

// ErrNotCloneable: the table cannot be cloned. Its rows can be imported into a new one.
var ErrNotCloneable = transfer.ErrNotCloneable

// Clone makes an independent table in the directories of to. It holds the rows of the snapshot
// from.SnapshotID (0: the newest) of the table in the directories of from. Only the index is
// written, about 2 % of the rows' bytes: bucket and delta files never change once a snapshot has
// them, so the new table gets them as hard links. From then on either table can be changed,
// compacted, read or deleted, by any process, without an effect on the other: the file system
// counts the links, and frees a file when no table has it any more.
//
// Each file is linked into the first directory of to that is on the same file system. If there is
// none, the file is copied to the directory at the same position in the list. Files that have not
// all arrived (from.SSD.Source) can only be linked: otherwise the error is ErrArriving. The catalog
// is written last, so there is no table in to before everything it needs is durable. Clone holds
// the source table for reading and changes nothing there. Both tables are of KindSSD.
//
// Errors: ErrNotCloneable for a table of an older version without its own hash function for keys;
// ErrNoSnapshot, ErrInUse, ErrFiles, ErrNoSpace, *CorruptionError. After an error, files may be
// left in the directories of to.
func Clone(ctx context.Context, from, to Options) (CloneInfo, error) {
	from.ensureDefaults()
	to.ensureDefaults()
	if from.Kind != KindSSD || to.Kind != KindSSD {
		return CloneInfo{}, fmt.Errorf("%w: only tables of kind %q can be", ErrNotCloneable, KindSSD)
	}
	return transfer.Clone(ctx, from.onSSD().Directories(), to.onSSD().Directories())
}

// CanLink reports whether a file in the directory from can be linked into the directory to. It
// tries it with a file that it makes.
func CanLink(from, to string) bool { return transfer.CanLink(from, to) }

// PortableFile is a file of a snapshot.
type PortableFile = transfer.File

// OpenFile is a file that is open for reading.
type OpenFile = transfer.OpenFile

// SnapshotFiles are the files of a snapshot of an open table. They stay unchanged until Release,
// even if the snapshot is dropped meanwhile.
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

// RestoreIndex makes a table on SSD in the directories of o, from the files of snapshots, which are
// already there, and the indexes of these snapshots. Each index is given as a list of file names:
// the first is the complete index, each later one has what changed since the one before.
// RestoreIndex replaces a catalog that an interrupted call left behind. The table then has these
// snapshots, under their old IDs.
func RestoreIndex(ctx context.Context, o Options, indexes ...[]string) ([]SnapshotInfo, error) {
	o.ensureDefaults()
	return transfer.RestoreIndex(ctx, o.onSSD().Directories(), indexes...)
}

// SpreadFiles returns, for each of the files of a snapshot, given by their names and sizes, the
// number of the directory (of n) in which it is put. Bucket files go where the fewest bytes are.
// Delta files go to the directory that they came from, as far as there are that many. The result is
// deterministic.
func SpreadFiles(names []string, bytes []int64, n int) []int {
	return transfer.SpreadFiles(names, bytes, n)
}
