package metrics

import "aibox/internal/kernel"

// LogitShift returns the shift of logits that undoes negative down-sampling: keeping a share s of
// the negatives multiplies the odds by 1/s.
func LogitShift(share float64) float32 { return kernel.Log(float32(share)) }
