package modeldir

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
)

// Portable returns the files of a model. The caller closes m after the result.
func (m *Model) Portable(ctx context.Context, log *slog.Logger) (*modelfiles.Held, error) {
	held, err := m.HoldTable(ctx, log)
	if err != nil {
		return nil, err
	}
	o, err := m.TableOptions(sparsetable.Options{})
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return modelfiles.OfModel(m.genDir(), m.Manifest.Dense, o, held)
}

// TempFile returns a file without a name in the generation, so that nothing of it remains once it
// is closed or the process has died.
func (w *Writer) TempFile() (*os.File, error) { return modelfiles.TempFile(w.genDir()) }

// NewIndexes returns a writer of the indexes of the run's snapshots.
func (w *Writer) NewIndexes() *modelfiles.Indexes { return modelfiles.NewIndexes(w.genDir()) }

// HoldRun returns the files of a snapshot of the run: the given dense files, snapshots of the
// table, and reports by base name.
func (w *Writer) HoldRun(dense []string, table sparsetable.Table, snapshots []uint64, reports []modelfiles.RunReport) (*modelfiles.RunFiles, error) {
	return modelfiles.OfRun(w.genDir(), dense, table, snapshots, reports)
}
