package modeldir

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
)

// Portable returns the files of a model. m is closed after the result.
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

// TempFile returns a file in the generation that has no name, so that nothing is left of it
// once it is closed, or the process has died.
func (w *Writer) TempFile() (*os.File, error) { return modelfiles.TempFile(w.genDir()) }

// NewIndexes returns what writes the indexes of the snapshots of the run.
func (w *Writer) NewIndexes() *modelfiles.Indexes { return modelfiles.NewIndexes(w.genDir()) }

// HoldRun returns the files of a snapshot of the run: these dense files, these snapshots of the
// table, and reports by their base names.
func (w *Writer) HoldRun(dense []string, table sparsetable.Table, snapshots []uint64, reports []modelfiles.RunReport) (*modelfiles.RunFiles, error) {
	return modelfiles.OfRun(w.genDir(), dense, table, snapshots, reports)
}
