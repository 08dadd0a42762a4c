package slots

// The names of the hash functions of keys, as the catalog has them. Tables that were
// made before have the first one, Hasher 0; that of a new table has its number as seed.
const (
	HashName       = "murmur3-fmix64"
	SeededHashName = "murmur3-fmix64-of-key-xor-table"
)
