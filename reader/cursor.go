package reader

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aibox/reader/source"
)

// Cursor is a place between two passes of a reading. A reading of the same input with
// the same options that starts at it (Options.Start) delivers the passes that would have
// followed, with the same examples, mini-batches, keys, counts, bad rows and errors.
// Options.Threads and Options.AheadChunks may differ. A Cursor is immutable, and can be
// written as JSON and read back.
//
// Decoding starts at the beginning of a unit, somewhat before the place. The bad rows and losses
// between the two are found and written to the quarantine again, so a caller that resumes a reading
// must first truncate the output to Options.Quarantine to QuarantineBytes. Until the first pass,
// Counts are those at the beginning of the unit.
type Cursor struct {
	Files   []source.File     `json:"files"`   // of the input that are not empty
	Options map[string]string `json:"options"` // those that must be the same
	Passes  int64             `json:"passes"`  // before the place

	// Position is where the next example begins or, within a shuffle window, where the
	// window begins.
	Position
	Windows uint64 `json:"windows"` // shuffle windows before the present one
	Taken   int    `json:"taken"`   // examples of the window that are in passes before the place
}

// cursor is the present place. REQUIRES: no mini-batch is begun.
func (r *Reader) cursor() *Cursor {
	c := &Cursor{Files: r.files, Options: r.settings, Passes: r.build.seq, Position: r.rows.at}
	if w := r.window; w != nil {
		c.Windows = w.number
		if w.draining && !w.drained() {
			c.Position, c.Windows, c.Taken = w.start, w.number-1, w.next
		}
	}
	return c
}

// settings are the options on which the passes and errors depend, as text, by name.
func (o *Options) settings() map[string]string {
	list := map[string]any{
		"compression": o.Compression, "batch size": o.BatchSize, "batches per pass": o.BatchesPerPass,
		"limit": o.Limit, "part": spanOf(o), "shuffle buffer": o.ShuffleBuffer, "seed": o.Seed, "epoch": o.Epoch, "negative sampling": o.NegativeSampling,
		"group by": o.GroupBy, "pass through": o.PassThrough, "keep lists": o.KeepLists, "keep unlabelled": o.KeepUnlabelled,
		"max bad rows": o.MaxBadRows, "max bad fraction": o.MaxBadFraction, "max lost fraction": o.MaxLostFraction,
		"keep bad rows": o.KeepBadRows, "quarantine rows": o.QuarantineRows, "hide cells": o.HideCells,
		"max line bytes": o.MaxLineBytes, "chunk bytes": o.ChunkBytes,
	}
	// The type names are those of this package's former types, so that old cursors still fit.
	schema := strings.ReplaceAll(fmt.Sprintf("%#v", o.Schema.WithDefaults()), "rowschema.", "reader.")
	settings := map[string]string{"schema": fmt.Sprintf("sha256 %x", sha256.Sum256([]byte(schema)))}
	for name, value := range list {
		settings[name] = fmt.Sprint(value)
	}
	return settings
}

// fits checks that the cursor is one of a reading of these files with these settings.
func (c *Cursor) fits(settings map[string]string, files []source.File) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if was, known := c.Options[name]; !known || was != settings[name] {
			return cursorErrorf("the option %q was %q and now is %q", name, was, settings[name])
		}
	}
	if err := source.SameFiles(c.Files, files); err != nil {
		return cursorErrorf("the input has changed since: %w", err)
	}
	const maxUnits = 1 << 31 // so that no calculation overflows
	if c.File < 0 || c.File >= len(files) || c.Unit < 0 || c.Unit >= maxUnits || c.Skip < 0 || c.Taken < 0 || c.Counts.Examples < 0 {
		return errNoSuchPlace
	}
	return nil
}

func cursorErrorf(format string, args ...any) error {
	return &CursorError{fmt.Errorf("reader: reading cannot continue where an earlier reading stopped: "+format, args...)}
}
