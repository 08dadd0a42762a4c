// Package splitmix has the generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) as pure
// functions: random numbers are hashes of their purpose, and there is no state. Number n after x is
// Mix(x + n*Step).
package splitmix

// Step is 2^64 over the golden ratio.
const Step = 0x9e3779b97f4a7c15

// Mix is a bijection that spreads every input bit over all output bits.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Next is the first number after x.
func Next(x uint64) uint64 { return Mix(x + Step) }
