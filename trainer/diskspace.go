package trainer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/internal/process"
	"aibox/sparsetable"
	"aibox/trainer/forecast"
)

// spareBytes is how much of a file system snapshots leave free for everything else that a run
// writes.
const spareBytes = 256 << 20

// diskFull reports whether an error says that there is no space on disk.
func diskFull(err error) bool {
	return errors.Is(err, sparsetable.ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// snapshotBytes returns how much disk space a snapshot of the current state takes beside earlier
// ones: an upper bound, or nearly one.
func (r *run) snapshotBytes() int64 {
	return forecast.DenseBytes(r.model, r.state.Engine.Dense) + r.tableBytes()
}

// tableBytes returns how much disk space a snapshot of the table takes beside earlier ones: an
// upper bound, or nearly one.
func (r *run) tableBytes() int64 {
	if r.table.Table == nil {
		return 0
	}
	st := r.table.Stats()
	row := int64(r.Layout.Bytes()) + 8 // with its key
	if r.job.SparseTable.Kind != sparsetable.KindSSD {
		return st.Rows * row
	}
	return min(st.Rows, st.CacheRows)*row + st.IndexBytes // changed rows, frequently used rows, and pages of the index
}

// room fails if a snapshot might fill the memory or one of the file systems that it is written to.
func (s *snapshots) room() error {
	r := s.run
	if err := r.roomInMemory(); err != nil {
		return err
	}
	table := s.tableBytes
	if table == 0 {
		table = r.tableBytes()
	}
	need := table + forecast.DenseBytes(r.model, r.state.Engine.Dense)
	dirs := append([]string{r.models.writer.TableDir()}, r.table.dirs...)
	for _, dir := range dirs {
		free, err := disk.Free(dir)
		if err != nil {
			return fmt.Errorf("free space: %w", err)
		}
		if r.opts.freeBytes != nil {
			free = r.opts.freeBytes(dir)
		}
		if free < need+spareBytes {
			return errNoRoom(dir, free, need)
		}
	}
	return nil
}

// copiedShare is the share of a table in memory that may be copied while a snapshot of it is
// written: the rows that training pins before they are written. If 100,000 examples with 5 new rows
// each are trained per second, and 200 MB of the table are written per second, that share is an
// eighth.
const copiedShare = 0.25

// roomInMemory fails if the copies that a snapshot of a table in memory makes might not fit the
// machine's memory. A table with a limit of its own stays within that limit.
func (r *run) roomInMemory() error {
	if r.job.SparseTable.Kind == sparsetable.KindSSD || r.job.SparseTable.MemoryBytes > 0 {
		return nil
	}
	need := int64(copiedShare * float64(r.table.Stats().MemoryBytes))
	if free := process.FreeMemory(); free >= 0 && free < need {
		return fmt.Errorf("%s of memory are free, and a snapshot of the table may take %s", humanize.Bytes(free), humanize.Bytes(need))
	}
	return nil
}

// errNoRoom says why no snapshot is begun: it might fill the disk.
func errNoRoom(dir string, free, need int64) error {
	return fmt.Errorf("%w: %s has %s left, and a snapshot may take %s and has to leave %s", sparsetable.ErrNoSpace, dir, humanize.Bytes(free), humanize.Bytes(need), humanize.Bytes(spareBytes))
}
