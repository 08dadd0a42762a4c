package half

import "aibox/internal/splitmix"

// purpose is "rounding". It separates these random numbers from other uses of a seed.
const purpose = 0x726f756e64696e67

// Rounding is the source of the random bits for one round of updates.
type Rounding uint64

// NewRounding returns the random bits for update n under seed. The bits of different n are
// independent of one another.
func NewRounding(seed, n uint64) Rounding {
	return Rounding(splitmix.Mix(splitmix.Mix(seed+purpose) + n*splitmix.Step))
}

// Bits is the number random by which the row of key is packed.
func (r Rounding) Bits(key uint64) uint64 { return splitmix.Mix(key ^ uint64(r)) }
