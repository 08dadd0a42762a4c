// Package half converts float32 numbers to 16-bit ones with stochastic
// rounding, and back.
//
//	             sign  exponent  fraction   largest     smallest > 0
//	float16        1       5        10      65504       2^-24
//	bfloat16       1       8         7      3.39e38     2^-133
//
// Widening is exact. Narrowing chooses one of the two neighbours of a number, with such
// probabilities that the expected value is the number itself. So an update that is too
// small to change a rounded weight still changes it on average (Gupta et al., "Deep
// Learning with Limited Numerical Precision", ICML 2015). A number that the format can
// represent stays as it is. A finite number beyond the largest finite number of the format
// becomes that number. An infinity stays an infinity, and NaN becomes the quiet NaN of the
// same sign.
//
// The random bits are a function of a 64-bit number that the caller gives and of
// an element's position: no generator has a state, and the same call gives the
// same bits on every processor.
//
// # Packing
//
// Slices of 16-bit numbers are packed two to a 32-bit word, element 2w in the
// low half of word w and 2w+1 in the high one, which is their order in memory on
// little-endian machines. The words have the type float32, like the words of a row of the
// sparse table, but they are bits and not numbers. After an odd number of elements the
// high half of the last word is zero.
package half
