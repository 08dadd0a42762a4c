package half

const (
	goldenGamma = 0x9e3779b97f4a7c15 // SplitMix64's increment
	purpose     = 0x726f756e64696e67 // "rounding": keeps apart what else a seed is used for
)

// Rounding is the source of the random bits for one round of updates.
type Rounding uint64

// NewRounding returns the random bits for update n under seed. The bits of different n are
// independent of one another.
func NewRounding(seed, n uint64) Rounding {
	return Rounding(mix(mix(seed+purpose) + n*goldenGamma))
}

// Bits is the number random by which the row of key is packed.
func (r Rounding) Bits(key uint64) uint64 { return mix(key ^ uint64(r)) }

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), a bijection.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}
