//go:build !amd64

package kernel

// bestLevel is the highest level of this processor.
const bestLevel = levelPortable
