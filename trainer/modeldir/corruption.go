package modeldir

import "aibox/trainer/modeldir/internal/faults"

// CorruptionError says that a file of the model directory is damaged.
type CorruptionError = faults.Corruption

// Incomplete returns the error for an interrupted run whose parts do not match.
func (w *Writer) Incomplete(err error) error {
	return faults.Damaged(w.TableDir(), err.Error())
}
