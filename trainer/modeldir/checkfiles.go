package modeldir

import (
	"context"
	"log/slog"

	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/outside"
)

// CheckTable fails with a *LostError if directories of the model's table outside the model
// directory, or files in them, are lost. It reads no rows.
func (m *Model) CheckTable(ctx context.Context, log *slog.Logger) error {
	dirs, err := outside.Dirs(m.genDir())
	if err != nil || len(dirs) == 0 {
		return err
	}
	if err := checkDirs(dirs); err != nil {
		return err
	}
	return m.CheckFiles(ctx, log)
}

// CheckFiles fails if a file of the model's table does not exist or is truncated, with a *LostError
// if a disk may be the cause. It reads no file, so it ignores files that have not arrived.
func (m *Model) CheckFiles(ctx context.Context, log *slog.Logger) error {
	if m.Source == nil {
		m.Source = unread{}
		defer func() { m.Source = nil }()
	}
	dirs := m.TableDirs()
	held, err := m.HoldTable(ctx, log)
	if err != nil {
		return TableLost(dirs, err)
	}
	defer held.Close() // it was only read
	o, err := m.TableOptions(sparsetable.Options{})
	if err == nil {
		_, err = sparsetable.PortableFiles(o)
	}
	return TableLost(dirs, err)
}

// unread is the source of bytes of files that are not read.
type unread struct{}

func (unread) Lacks(string) bool                         { return false }
func (unread) Here(string, int64, int64) bool            { return true }
func (unread) Await(string, int64, int64) error          { return nil }
func (unread) Again(string, []byte, int64) (bool, error) { return false, nil }
