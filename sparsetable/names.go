package sparsetable

import (
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/ssd"
)

// The types that both kinds of tables share are in packages of their own, which know
// neither kind. These are their public names.

// Of rows, see internal/layout.
type (
	// Layout is the fixed shape of every row of a table.
	Layout = layout.Layout
	// RowStats are the statistics kept with a row.
	RowStats = layout.RowStats
	// ValueFormat is the encoding of the values of rows.
	ValueFormat = layout.ValueFormat
	// Rounding is the source of the random bits of Layout.StoreValues.
	Rounding = layout.Rounding
	// LayoutError says that the rows of a table do not have Options.Layout.
	LayoutError = layout.Error
)

// The value formats.
const (
	Float32  = layout.Float32  // 4 bytes a value
	Float16  = layout.Float16  // 2 bytes: 11 bits of precision down to 6e-5, less below; up to 65504
	BFloat16 = layout.BFloat16 // 2 bytes: 8 bits of precision, the range of float32
)

// ValueFormats lists the names that ParseValueFormat knows.
func ValueFormats() []string { return layout.ValueFormats() }

// ParseValueFormat returns the format of the given name.
func ParseValueFormat(name string) (ValueFormat, error) { return layout.ParseValueFormat(name) }

// NewRounding returns the random bits of update n, say the n-th step of training. A row
// must not be updated twice with the same seed and n, because the errors of the two
// roundings would not be independent.
func NewRounding(seed, n uint64) Rounding { return layout.NewRounding(seed, n) }

// Of calls and what they return, see internal/contract.
type (
	// WorkingSet is the pinned rows of one Pull. Position i belongs to keys[i].
	WorkingSet = contract.WorkingSet
	// PullMode says what Pull does with a key that has no row.
	PullMode = contract.PullMode
	// RowSource yields rows for Import.
	RowSource = contract.RowSource
	// ExpiryRule expires a row that violates one of its active limits.
	ExpiryRule = contract.ExpiryRule
	// Scanner is the part of a Table that shows its rows.
	Scanner = contract.Scanner
	// SnapshotInfo describes a committed snapshot.
	SnapshotInfo = contract.SnapshotInfo
	// PendingSnapshot is a snapshot whose state is fixed and which is being written.
	PendingSnapshot = contract.PendingSnapshot
	// Stats are counters since open, and present sizes.
	Stats = contract.Stats
	// BudgetError says what did not fit the memory budget. It wraps ErrBudget.
	BudgetError = contract.BudgetError
	// CorruptionError reports damage in a file.
	CorruptionError = contract.CorruptionError
)

// The kinds of tables.
const (
	KindMemory = contract.KindMemory // all rows in memory
	KindSSD    = contract.KindSSD    // rows on SSDs; those in use are in memory
)

// The modes of Pull, see contract.PullMode.
const (
	PullCreate    = contract.PullCreate    // create the row
	PullLookup    = contract.PullLookup    // refer to a shared zero row, create nothing
	PullDivisible = contract.PullDivisible // the caller can divide the keys among several Pulls
	PullAhead     = contract.PullAhead     // the caller calls Begin of the set before it changes the rows
	PullTrained   = contract.PullTrained   // no key has an untrained row
	PullPatient   = contract.PullPatient   // the caller has other sets, which it will release before it pulls again
)

// The errors that package contract documents.
var (
	ErrBudget      = contract.ErrBudget
	ErrMemory      = contract.ErrMemory
	ErrCrowded     = contract.ErrCrowded
	ErrNoSnapshot  = contract.ErrNoSnapshot
	ErrClosed      = contract.ErrClosed
	ErrReadOnly    = contract.ErrReadOnly
	ErrNoSpace     = contract.ErrNoSpace
	ErrFailed      = contract.ErrFailed
	ErrInUse       = contract.ErrInUse
	ErrFiles       = contract.ErrFiles
	ErrSkewed      = contract.ErrSkewed
	ErrPinned      = contract.ErrPinned
	ErrNoDirectory = contract.ErrNoDirectory
	ErrUnsupported = contract.ErrUnsupported
)

// Decay returns factor to the power days: the part of a show or click count that is left
// after so many days, with the same bits on every machine.
func Decay(factor float32, days uint32) float64 { return contract.Decay(factor, days) }

// Of the options of a table of KindSSD, see internal/ssd.

// OptionsError says what is wrong with them.
type OptionsError = ssd.OptionsError

// CachePolicies are the names that SSDOptions.CachePolicy takes, the default
// first.
func CachePolicies() []string { return ssd.CachePolicies() }

// Of the files of a table of KindMemory, see internal/memory.
type (
	// FS is the part of a file system that a table of KindMemory uses.
	FS = memory.FS
	// File is an open file of an FS.
	File = memory.File
	// OSFS is the operating system's file system.
	OSFS = memory.OSFS
)
