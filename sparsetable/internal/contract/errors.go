package contract

import (
	"errors"

	"aibox/internal/errkind"
)

// Sentinel errors.
var (
	// ErrBudget: rows do not fit the memory budget. A *BudgetError, which wraps it,
	// names the smallest budget that works.
	ErrBudget = errkind.New(errkind.Usage, "sparsetable: memory budget exceeded")
	// ErrMemory: the process cannot have the memory for more rows. A table of KindSSD then shrinks
	// its cache; if that becomes too small, it returns a *BudgetError that wraps ErrMemory.
	ErrMemory = errkind.New(errkind.Job, "sparsetable: memory is exhausted")
	// ErrCrowded: a Pull with PullPatient has to be repeated once other working sets are released.
	ErrCrowded = errkind.New(errkind.Internal, "sparsetable: rows of other working sets take too much memory: release some, and pull again")
	// ErrNoSnapshot: the directory holds no committed snapshot (or not that one).
	ErrNoSnapshot = errkind.New(errkind.IO, "sparsetable: no such snapshot")
	// ErrClosed: the table was closed.
	ErrClosed = errors.New("sparsetable: table is closed")
	// ErrReadOnly: the table was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("sparsetable: table is read-only")
	// ErrNoSpace: a directory's budget or its file system has no room. The error that wraps it says
	// which, and how much is left. The failed call has not done what was asked for. Rows in memory
	// stay, and Snapshot saves them if there is room for them. DropSnapshot and Expire make room.
	// Only KindSSD returns it.
	ErrNoSpace = errkind.New(errkind.IO, "sparsetable: no space")
	// ErrFailed: writing the table's catalog failed, and it is unknown whether the snapshot was
	// committed. The error that wraps it names the directory and the cause. The table can only be
	// closed; after it is opened again, Snapshots tells whether the snapshot is there. Only KindSSD
	// returns it.
	ErrFailed = errkind.New(errkind.IO, "sparsetable: the table cannot be written any more")
	// ErrInUse: another process has the table open for writing, or has it open for reading while
	// this process wants to write. A table of KindMemory that is opened for reading is read
	// completely by Open, so a writer does not exclude it.
	ErrInUse = errkind.New(errkind.Locked, "sparsetable: table is in use")
	// ErrFiles: a file of the table is in none of its directories, or in two of
	// them. Probably a directory is not mounted, was not named, or was copied. The
	// error that wraps it names the file and the directories. Only KindSSD returns
	// it.
	ErrFiles = errkind.New(errkind.IO, "sparsetable: the table's directories have changed")
	// ErrSkewed: so many keys share the lowest bits of their hashes that a bucket would be too
	// large. Only tables of versions that used one hash function for all tables return it. A new
	// table that imports the rows of the old one does not have the problem.
	ErrSkewed = errkind.New(errkind.IO, "sparsetable: too many keys have similar hashes")
	// ErrPinned: the operation requires that all working sets were released.
	ErrPinned = errors.New("sparsetable: working sets are still pinned")
	// ErrNoDirectory: a table without Options.Dir was asked for a snapshot.
	ErrNoDirectory = errors.New("sparsetable: the table has no directory for snapshots")
	// ErrUnsupported: the table, or a table of its kind, does not support the
	// operation.
	ErrUnsupported = errkind.New(errkind.Usage, "sparsetable: the table does not support this")
)
