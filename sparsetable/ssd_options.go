package sparsetable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/tabledirs"
)

// SSDOptions are the options of KindSSD alone. The zero value is the default.
type SSDOptions struct {
	// Dirs are the table's directories, one per SSD; the first also holds the
	// catalog, of which each of the others has a copy. The table cannot be opened without one of them. Empty means Options.Dir
	// alone. With Dirs, Options.Dir is not used.
	// No directory may be given twice, not even by another name or a link.
	Dirs []string
	// AllowLost lets Open accept that some of Dirs are missing, unreadable, or empty, as a
	// new disk is that was mounted in place of a lost one. One whose disk fails while the table
	// is opened counts as missing, and so does one with an older catalog than the others. The
	// table then has all rows of the other directories, as they were in the snapshot. LossHandler says what was lost.
	// It reads all buckets that are left, to count their rows. It implies
	// Options.MustExist, and excludes Options.ReadOnly.
	AllowLost bool
	// CachePolicy is one of CachePolicies; "" is the first of them.
	CachePolicy string
	// LookaheadPasses is how many announced passes the policy "lookahead"
	// considers; 0 chooses the number from the budget.
	LookaheadPasses int
	// MaxSpaceAmplification bounds the bytes on disk per byte of live buckets
	// (Stats.DiskLiveBytes, which counts whole units of the device); 0 means 2.0.
	// Whatever it is, each directory may have 3.5 MiB of dead bytes; with MemoryBytes
	// beyond 16 MiB that grows, to 32 MiB from 256 MiB on. So small tables may take
	// more than the bound. Not counted are the space that only snapshots need, and the
	// spool of an import. A call that writes buckets also compacts files, so that the
	// bound holds at any time.
	MaxSpaceAmplification float64
	// DirBudgetBytes bounds the space that is taken in each directory by bucket
	// files, by the rows that snapshots keep outside of them, and by the spool of
	// an import; 0 means no limit. The catalog is small and not
	// counted.
	DirBudgetBytes int64
	// HotBytes bounds how many bytes of clean rows (rows whose buckets are up to
	// date) a snapshot writes in addition to the dirty ones. It writes those used
	// most, so that they are in memory again soon after a restart. Every snapshot
	// writes them anew, in the background, and every snapshot that is kept takes
	// this space on disk. It writes none while there are working sets or announced passes,
	// amid training, nor on a disk with less than 256 MiB free. Dirty rows are saved and restored in any case. 0 means a
	// quarter of MemoryBytes, but at most 1 GiB; a negative value means that no
	// clean rows are written or restored.
	HotBytes int64
	// QueueDepth is how many reads a device is given at once; 0 chooses the number.
	QueueDepth int
	// Direct says whether I/O bypasses the page cache (direct I/O): "on"; "off"; or
	// "auto" (also ""), which uses direct I/O where the file system supports it.
	Direct string
	// Brief says that the table is open for a short time, with less memory than it has otherwise, so that the log
	// does not ask for more.
	Brief bool
	// Source has the bytes that bucket files lack; nil: they lack none, see ErrArriving.
	Source Source
}

// defaultSSDMemoryBytes is the budget of a table of KindSSD if Options.MemoryBytes is 0.
const defaultSSDMemoryBytes = 256 << 20

// maxSSDWords is how many words a row may have: buckets say it in 16 bits.
const maxSSDWords = 1<<16 - 1

const (
	defaultMaxAmplification = 2.0 // HierPS's bound
)

// CachePolicies are the names that SSDOptions.CachePolicy takes, the default
// first.
func CachePolicies() []string {
	names := rowcache.Policies()
	i := slices.Index(names, defaultCachePolicy)
	names[0], names[i] = names[i], names[0]
	return names
}

const (
	policyLookahead    = rowcache.Lookahead
	defaultCachePolicy = policyLookahead
)

var directModes = map[string]blockio.Mode{"": blockio.Auto, "auto": blockio.Auto, "on": blockio.On, "off": blockio.Off}

func (o *Options) ensureSSDDefaults() {
	s := &o.SSD
	if len(s.Dirs) == 0 {
		s.Dirs = []string{o.Dir}
	}
	if s.CachePolicy == "" {
		s.CachePolicy = defaultCachePolicy
	}
	if s.MaxSpaceAmplification == 0 {
		s.MaxSpaceAmplification = defaultMaxAmplification
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultSSDMemoryBytes
	}
	if s.HotBytes == 0 {
		s.HotBytes = min(o.MemoryBytes/hotShare, maxHotBytes)
	}
}

// OptionsError says what is wrong with the options of KindSSD.
type OptionsError struct{ Err error }

func (e *OptionsError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *OptionsError) Unwrap() error { return e.Err }

// ErrorKind sorts the error for exit codes and reports.
func (*OptionsError) ErrorKind() errkind.Kind { return errkind.Usage }

func (o *Options) validateSSD() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("sparsetable: "+format, args...)) }
	s := &o.SSD
	if len(s.Dirs) == 0 && o.Dir == "" {
		fail("a table on SSD needs a directory")
	}
	known := make([]tabledirs.Place, len(s.Dirs))
	for i, d := range s.Dirs {
		if d == "" {
			fail("the name of directory %d is empty", i+1)
			continue
		}
		known[i] = tabledirs.PlaceOf(d)
		twin := slices.IndexFunc(known[:i], known[i].Is)
		switch {
		case twin < 0:
		case s.Dirs[twin] == d:
			fail("directory %q is given twice; name each once", d)
		default:
			fail("directories %q and %q are the same; name each once", s.Dirs[twin], d)
		}
	}
	if w := o.Layout.Words(); w > maxSSDWords {
		fail("rows of %d words: a table on SSD holds rows of at most %d", w, maxSSDWords)
	}
	if s.CachePolicy != "" && !slices.Contains(CachePolicies(), s.CachePolicy) {
		fail("unknown cache policy %q: want %s", s.CachePolicy, strings.Join(CachePolicies(), ", "))
	}
	if s.LookaheadPasses < 0 {
		fail("lookahead of %d passes: want 0 (chosen) or more", s.LookaheadPasses)
	}
	if s.MaxSpaceAmplification != 0 && s.MaxSpaceAmplification < 1.1 {
		fail("space amplification of at most %g: want at least 1.1", s.MaxSpaceAmplification)
	}
	if s.DirBudgetBytes < 0 {
		fail("directory budget of %d bytes: want 0 (no limit) or more", s.DirBudgetBytes)
	}
	if s.AllowLost && o.ReadOnly {
		fail("a table that lacks files opens for writing only")
	}
	if s.QueueDepth < 0 || s.QueueDepth > 4096 {
		fail("queue depth %d: want 0 (chosen) to 4096", s.QueueDepth)
	}
	if _, ok := directModes[s.Direct]; !ok {
		fail("direct I/O %q: want auto, on or off", s.Direct)
	}
	if len(errs) > 0 {
		return &OptionsError{errors.Join(errs...)}
	}
	return nil
}

// CheckBudget returns a BudgetError if MemoryBytes is too little even for an empty table
// of KindSSD with rows of this Layout. The error names a budget that suffices on every
// device. Open finds out the same, but only when the directories are at hand.
func (o Options) CheckBudget() error {
	if o.Kind != KindSSD || o.MemoryBytes == 0 {
		return nil
	}
	o.ensureDefaults()
	if o.planned(o.Layout, leastUnit).Fits(o.MemoryBytes, plan.Load{}) {
		return nil
	}
	need := max(o.planned(o.Layout, leastUnit).Smallest(plan.Load{}), o.planned(o.Layout, pageCacheUnit).Smallest(plan.Load{}))
	return &BudgetError{What: "an empty table", NeedBytes: need, BudgetBytes: o.MemoryBytes}
}

// planned is what the plan of a table with rows of layout l, in units of so many bytes,
// depends on. REQUIRES: o has its defaults.
func (o *Options) planned(l Layout, unit int) plan.Table {
	return plan.Table{Layout: l, Unit: unit, Dirs: len(o.SSD.Dirs), Policy: o.SSD.CachePolicy, LookaheadPasses: o.SSD.LookaheadPasses}
}

// KindIn is the kind of the table whose snapshots are in dirs: a table on SSD has its catalog, or
// a copy of it, in each of its directories.
func KindIn(dirs ...string) string {
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, tabledirs.CatalogName)); err == nil {
			return KindSSD
		}
	}
	if len(tabledirs.CopiesIn(dirs)) > 0 {
		return KindSSD
	}
	return KindMemory
}

const (
	// hotShare and maxHotBytes determine the default of SSDOptions.HotBytes. A
	// quarter of the budget holds most of the hot clean rows, because the rows in
	// use are mostly dirty and are saved anyway. maxHotBytes is what a device
	// writes in about a second.
	hotShare    = 4
	maxHotBytes = 1 << 30
)
