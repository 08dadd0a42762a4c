// Package fixmath holds the elementary functions that the project needs in
// float64, with the same bits on every processor.
//
// Package math does not promise that: math.Exp has assembly of its own on some
// targets and takes another path where the processor has fused multiply-add,
// and the compiler fuses x*y + z on arm64, ppc64 and s390x. What must be equal
// everywhere (a generated log, a metric that decides when training stops)
// therefore uses this package. Every product here that is added to something
// is rounded explicitly, as in float64(x*y) + z, which the language forbids to
// fuse; so is a product that a function returns, since the call may be inlined
// into a sum. Division, square root and comparison are exact or correctly
// rounded everywhere.
//
// Results are within 3 ulp of the true value (Expm1: 6 ulp, NormalQuantile: 8 ulp).
// All functions are pure and safe for concurrent use.
//
// The float32 functions of the model itself are in internal/kernel.
package fixmath
