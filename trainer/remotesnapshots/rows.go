package remotesnapshots

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/mirror"
	"aibox/trainer/priority"
	"aibox/trainer/prioritysaves"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
)

// savesRows starts saving rows by priority.
func (u *Uploads) savesRows(earlier *mirror.Summary) *prioritysaves.Saves {
	job, layout := u.store.Job, u.source.Layout
	list, chunks := jobparts.PriorityBytes(job)
	if earlier == nil {
		earlier = new(mirror.Summary)
	}
	fraction := job.Snapshots.PriorityFraction
	return prioritysaves.New(prioritysaves.Options{
		List: priority.New(job.Snapshots.Priority, layout, list, job.Seed), Fraction: fraction, ChunkBytes: chunks,
		Layout: layout, Table: u.source.Table, TempFile: u.source.Writer.TempFile,
		Due:    func(since time.Duration, snapshots int64) bool { return u.pace.PriorityDue(since, snapshots, fraction) },
		Upload: u.uploadRows, Earlier: *earlier, Log: u.store.Log,
	})
}

// unclosed is a file that somebody else closes.
type unclosed struct{ io.ReaderAt }

func (unclosed) Close() error { return nil }

// rowsName is the name of the file of a priority save.
const rowsName = "rows"

// uploadRows uploads rows that were saved by priority.
func (u *Uploads) uploadRows(ctx context.Context, s *prioritysaves.Save) (*remote.Published, error) {
	if err := u.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer u.endTurn()
	if u.Summary().Step >= s.Step {
		return nil, nil // a snapshot that is uploaded has newer rows
	}
	d, err := u.store.openPresent("uploading rows")
	if err != nil {
		return nil, err
	}
	job, layout := u.store.Job, u.source.Layout
	model, err := json.Marshal(runstate.PrioritySave{
		Format: runstate.RecordFormat, Version: u.store.Version, Run: u.source.Identity, Time: u.source.Started.UTC(), Step: s.Step, Kind: job.Snapshots.Priority, Rows: s.Rows, Layout: layout,
	})
	if err != nil {
		return nil, err
	}
	p := u.store.publication(u.source.Identity, remote.PrioritySave, s.Step, model)
	p.Keep = int(math.Ceil(2 / job.Snapshots.PriorityFraction))
	p.Files = []remote.Local{{Name: rowsName, Bytes: s.Rows * int64(priority.RowBytes(layout)), Open: func() (remote.ReaderAt, error) { return unclosed{s.File}, nil }}}
	return d.Publish(ctx, p)
}

// SavedRows are the rows of a priority save that was fetched and verified.
type SavedRows struct {
	runstate.PrioritySave
	From string // URI
	path string
}

// FetchRows fetches to the directory scratch the priority saves of rows with the given layout whose
// step is after after and at most until, the newest first. It skips damaged ones.
func (s *Store) FetchRows(ctx context.Context, layout sparsetable.Layout, scratch string, after, until int64) ([]SavedRows, error) {
	d, err := s.open("restoring rows")
	if err != nil {
		return nil, err
	}
	all, faults, err := d.PrioritySaves(ctx)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		s.Log.Warn("a manifest in snapshots.remote cannot be read; if it is of a priority save, its rows are restored from older ones", "error", fault)
	}
	slices.SortStableFunc(all, func(a, b *remote.Manifest) int { return cmp.Compare(b.Step, a.Step) })
	var out []SavedRows
	for _, m := range all {
		if m.Step <= after || m.Step > until {
			continue
		}
		if ok, err := s.usable(m); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		rows := SavedRows{From: fmt.Sprintf("%s (priority save %d)", d.URI(), m.Number), path: filepath.Join(scratch, fmt.Sprintf("%s-%d", rowsName, m.Number))}
		err := json.Unmarshal(m.Model, &rows.PrioritySave)
		switch {
		case err != nil:
		case rows.Layout != layout:
			err = fmt.Errorf("its rows have %v, those of the table %v", rows.Layout, layout)
		case len(m.Files) != 1 || m.Files[0].Bytes != rows.bytes():
			err = errors.New("its file does not have the size of its rows")
		default:
			if err = (sparsetable.OSFS{}).MkdirAll(scratch); err != nil {
				return nil, err
			}
			_, err = d.Fetch(ctx, m, func(*remote.File) string { return rows.path })
			var damaged *remote.DamagedError
			if err != nil && !errors.As(err, &damaged) {
				return nil, err
			}
		}
		if err != nil {
			s.Log.Error("a priority save in snapshots.remote cannot be used; its rows are restored from older ones", "save", rows.From, "step", m.Step, "error", err)
			continue
		}
		out = append(out, rows)
	}
	return out, nil
}

// bytes returns the length of their file.
func (s *SavedRows) bytes() int64 { return s.PrioritySave.Rows * int64(priority.RowBytes(s.Layout)) }

// Refill inserts the rows that a table has lost.
func (s *SavedRows) Refill(ctx context.Context, to sparsetable.LossHandler) (rows int64, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return to.Refill(ctx, priority.NewReader(bufio.NewReaderSize(io.LimitReader(f, s.bytes()), 1<<20), s.Layout))
}
