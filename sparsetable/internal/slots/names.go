package slots

// The names of the hash functions of keys in the catalog. Tables of older versions have the first
// one, Hasher 0; a new table has the second one, with its number as the seed.
const (
	HashName       = "murmur3-fmix64"
	SeededHashName = "murmur3-fmix64-of-key-xor-table"
)
