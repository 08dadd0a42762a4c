package ssd

import (
	"log/slog"

	"errors"
	"fmt"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/tabledirs"
)

// Options say what table to open. Package sparsetable documents them, in Options and SSDOptions.
type Options struct {
	Dir         string
	SnapshotID  uint64
	MustExist   bool
	ReadOnly    bool
	Layout      layout.Layout
	Init        func(key uint64, row []float32)
	MemoryBytes int64
	Logger      *slog.Logger
	Settings
}

// Settings are sparsetable.SSDOptions, field by field.
type Settings struct {
	Dirs                  []string
	AllowLost             bool
	CachePolicy           string
	LookaheadPasses       int
	MaxSpaceAmplification float64
	DirBudgetBytes        int64
	HotBytes              int64
	QueueDepth            int
	Direct                string
	Brief                 bool
	Source                blockio.Source
}

const (
	defaultMemoryBytes      = 256 << 20
	defaultCachePolicy      = policyLookahead
	defaultMaxAmplification = 2.0 // HierPS's bound
	// hotShare and maxHotBytes determine the default of HotBytes. A quarter of the budget holds
	// most of the hot clean rows, because the rows in use are mostly dirty and are saved anyway. A
	// device writes maxHotBytes in about a second.
	hotShare    = 4
	maxHotBytes = 1 << 30
)

const policyLookahead = rowcache.Lookahead

// maxWords is the maximum number of words of a row: buckets store it in 16 bits.
const maxWords = 1<<16 - 1

// CachePolicies are the names that CachePolicy takes, the default first.
func CachePolicies() []string {
	names := rowcache.Policies()
	i := slices.Index(names, defaultCachePolicy)
	names[0], names[i] = names[i], names[0]
	return names
}

var directModes = map[string]blockio.Mode{"": blockio.Auto, "auto": blockio.Auto, "on": blockio.On, "off": blockio.Off}

// setDefaults replaces zero values by their defaults.
func (o *Options) setDefaults() {
	s := &o.Settings
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
		o.MemoryBytes = defaultMemoryBytes
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

// ErrorKind classifies the error for exit codes and reports.
func (*OptionsError) ErrorKind() errkind.Kind { return errkind.Usage }

// Validate returns everything that is wrong with the options that only this kind has. o may lack
// its defaults.
func (o Options) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("sparsetable: "+format, args...)) }
	s := &o.Settings
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
		same := slices.IndexFunc(known[:i], known[i].Is)
		switch {
		case same < 0:
		case s.Dirs[same] == d:
			fail("directory %q is given twice; name each once", d)
		default:
			fail("directories %q and %q are the same; name each once", s.Dirs[same], d)
		}
	}
	if w := o.Layout.Words(); w > maxWords {
		fail("rows of %d words: a table on SSD holds rows of at most %d", w, maxWords)
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
		fail("a table that has lost files can be opened only for writing")
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

// CheckBudget is sparsetable.Options.CheckBudget.
func (o Options) CheckBudget() error {
	if o.MemoryBytes == 0 {
		return nil
	}
	o.setDefaults()
	if o.planned(o.Layout, leastUnit).Fits(o.MemoryBytes, plan.Load{}) {
		return nil
	}
	need := max(o.planned(o.Layout, leastUnit).Smallest(plan.Load{}), o.planned(o.Layout, pageCacheUnit).Smallest(plan.Load{}))
	return &contract.BudgetError{What: "an empty table", NeedBytes: need, BudgetBytes: o.MemoryBytes}
}

// planned returns the inputs of the plan for a table with rows of layout l and units of unit bytes.
// REQUIRES: o has its defaults.
func (o Options) planned(l layout.Layout, unit int) plan.Table {
	return plan.Table{Layout: l, Unit: unit, Dirs: len(o.Dirs), Policy: o.CachePolicy, LookaheadPasses: o.LookaheadPasses}
}

// Directories returns the table's directories.
func (o Options) Directories() *tabledirs.Set {
	o.setDefaults()
	return &tabledirs.Set{Names: o.Dirs, Options: tabledirs.Options{
		ReadOnly: o.ReadOnly, SnapshotID: o.SnapshotID, AllowLost: o.AllowLost, QueueDepth: o.QueueDepth,
		Direct: directModes[o.Direct], Source: o.Source, Logger: o.Logger,
	}}
}

// forecastUnit is the unit of the device that a forecast assumes.
const forecastUnit = 4096

// ForecastBytes is the most memory that a new table takes when it has the given number of rows;
// rows < 0 means that the number is unknown. The result is the budget, or less for a much smaller
// table: carried buckets, for instance, take no memory as long as all rows are in the cache.
func (o Options) ForecastBytes(rows int64) int64 {
	o.setDefaults()
	budget := o.MemoryBytes
	if rows < 0 {
		return budget
	}
	p := o.planned(o.Layout, forecastUnit).Of(budget, rows, 0)
	return min(budget, p.Forecast(rows))
}
