package modeldir

import "aibox/trainer/modeldir/internal/faults"

// CorruptionError says that a file of the model directory is damaged.
type CorruptionError = faults.Corruption

// Incomplete is the error for what an interrupted run has left if its parts do not fit.
func (w *Writer) Incomplete(err error) error {
	return faults.Damaged(w.TableDir(), err.Error())
}
