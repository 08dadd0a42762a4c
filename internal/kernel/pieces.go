package kernel

// SumPiece is how many terms of the sum of a row's gradient are added up one after the other. The
// occurrences of a row in a mini-batch, in their order, are cut into pieces of so many, of which
// the last may be shorter; each piece is added up by itself, from +0 on, and then the sums of the
// pieces in order. In logs some rows occur in half of the examples: one chain of additions over all
// of them would keep one thread of the host, or one block of a device, at work long after all
// others have ended. Its length is part of the results, which are the same on the host and on
// devices. At 64 the sums of the pieces cost about a hundredth, and the largest part of the work, a
// piece, takes some microseconds.
const SumPiece = 64
