// Package hashes has the hashes that a model depends on: keys of features, and random numbers.
//
//	(space, value)                 --Key-->    64 bits, the key of a feature
//	(seed, purpose, stream, index) --Random--> 64 bits, the random number of an example
//
// None of them may ever change: tables are addressed by keys, and the random numbers determine
// which examples a model has seen, and in which order.
package hashes
