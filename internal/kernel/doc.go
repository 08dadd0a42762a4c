// Package kernel has the matrix and vector arithmetic for training.
// Its results are the same bit for bit on every processor, at every
// instruction set level and for every number of threads, so that a model
// trained on one machine can be reproduced on another.
//
// # How the bits are fixed
//
// IEEE 754 rounds each operation exactly; what differs between machines is
// which operations a program performs and in what order. This package fixes
// both:
//
//   - Gemm: each element of C is one chain of fused multiply-adds over k in
//     ascending order, starting from +0 (or from C). Blocking, packing,
//     vectors and threads only decide which chains run at the same time.
//     A chain that spans several blocks of k rests in C in between, which is
//     exact because C has the precision of the chain.
//   - An Epilogue (bias, activation, derivative) acts on an element after its chain
//     and gives the bits of the single steps.
//   - GemmBF16: operands rounded to bfloat16, and chains of VDPBF16PS: see bf16.go.
//   - Sum, Dot: lane i of 16 takes elements i, i+16, i+32, … in
//     order; the lanes are then added as a tree: i and i+8, i and i+4, i and
//     i+2, and last 0 and 1.
//   - ColSum: one chain of additions per column, rows in ascending order.
//   - Element-wise functions: the operations and their order are part of each
//     function's documentation. Exp, Log, Sigmoid, Tanh and Softplus compute in
//     float64 with products and sums rounded separately and round to float32
//     once at the end.
//
// Where no fused operation is meant the code says float64(x*y) + z, because
// the Go compiler may fuse x*y + z on arm64, s390x, ppc64le, riscv64 and on
// amd64 from GOAMD64=v3 on.
//
// NaN is the one exception: whether a result is NaN is fixed, its sign and
// payload are not, since processors choose them differently. Denormal numbers
// are computed exactly; Go never switches the processor to flush them.
//
// # Levels
//
// Each kernel exists in portable Go, which is the oracle, and most of them in
// assembler for AVX2 with FMA; the matrix product also for AVX-512F, and that of
// bfloat16 for AVX512_BF16 where the processor has it. The best
// level of the processor is chosen at start. The environment variable
// AIBOX_CPU (portable, avx2 or avx512) lowers it, SetLevel does so for tests; a
// value that the processor lacks is ignored, and CheckEnvironment reports it.
// The assembler is written by the program in gen.
//
// # Threads
//
// A Scratch computes matrix products on the goroutine that calls it, and a PackedB holds a
// matrix that is packed once for several products.
//
// Functions that take a matrix (Gemm and its kin, ColSum) split their work over Threads()
// goroutines by themselves. Functions on plain slices run in the goroutine that calls them; for
// long slices, call them within Parallel (assembler cannot be preempted: a vector of 10^7 elements
// would keep the garbage collector waiting for milliseconds). Goroutines live for one call; the
// caller works with them and waits for them, so the package has no state that needs a Close. All
// functions may be called from several goroutines at once, as long as no element is written by one
// call and read or written by another.
//
// A function panics if a slice has the wrong length, which is an error of the caller.
package kernel
