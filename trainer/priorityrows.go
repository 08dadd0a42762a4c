package trainer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"aibox/sparsetable"
	"aibox/trainer/priority"
	"aibox/trainer/remote"
	"aibox/trainer/runstate"
)

// savedRows are the rows of a priority save, which was fetched and verified.
type savedRows struct {
	runstate.PrioritySave
	from string // URI
	path string
}

// fetchSavedRows fetches the priority saves in snapshots.remote that are newer than a step
// and not newer than another one, the newest first, to the directory scratch. One that is
// damaged is passed over.
func (r *run) fetchSavedRows(ctx context.Context, scratch string, after, until int64) ([]savedRows, error) {
	d, err := r.remoteSnapshots("restoring rows")
	if err != nil {
		return nil, err
	}
	all, faults, err := d.PrioritySaves(ctx)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		r.log.Warn("a manifest in snapshots.remote cannot be read; if it is of a priority save, its rows go back to older ones", "error", fault)
	}
	slices.SortStableFunc(all, func(a, b *remote.Manifest) int { return cmp.Compare(b.Step, a.Step) })
	var out []savedRows
	for _, m := range all {
		if m.Job != r.job.PlainName() || m.Step <= after || m.Step > until {
			continue
		}
		if ok, err := r.mayGoOnFrom(m); err != nil {
			return nil, err
		} else if !ok {
			continue
		}
		s := savedRows{from: fmt.Sprintf("%s (priority save %d)", d.URI(), m.Number), path: filepath.Join(scratch, fmt.Sprintf("%s-%d", rowsName, m.Number))}
		err := json.Unmarshal(m.Model, &s.PrioritySave)
		switch {
		case err != nil:
		case s.Layout != r.Layout:
			err = fmt.Errorf("its rows have %v, those of the table %v", s.Layout, r.Layout)
		case len(m.Files) != 1 || m.Files[0].Bytes != s.Rows*int64(priority.RowBytes(r.Layout)):
			err = errors.New("its file does not have the size of its rows")
		default:
			if err = (sparsetable.OSFS{}).MkdirAll(scratch); err != nil {
				return nil, err
			}
			_, err = d.Fetch(ctx, m, func(*remote.File) string { return s.path })
			var damaged *remote.DamagedError
			if err != nil && !errors.As(err, &damaged) {
				return nil, err
			}
		}
		if err != nil {
			r.log.Error("a priority save in snapshots.remote cannot be used; its rows go back to older ones", "save", s.from, "step", m.Step, "error", err)
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// refill inserts the rows that a table has lost.
func (s *savedRows) refill(ctx context.Context, to sparsetable.LossHandler) (rows int64, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return to.Refill(ctx, priority.NewReader(bufio.NewReaderSize(io.LimitReader(f, s.Rows*int64(priority.RowBytes(s.Layout))), 1<<20), s.Layout))
}
