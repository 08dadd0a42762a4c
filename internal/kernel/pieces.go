package kernel

// SumPiece is the length of the pieces in which a row's gradient is summed. The occurrences of a
// row in a mini-batch, in order, are cut into pieces of SumPiece, of which the last may be shorter.
// Each piece is summed sequentially, starting from +0, and then the sums of the pieces are added in
// order. In logs, some rows occur in half of the examples: a single chain of additions over all of
// them would keep one thread of the host, or one block of a device, busy long after all others have
// finished. SumPiece is part of the definition of the results, which are the same on the host and
// on devices. At 64, adding the sums of the pieces costs about a hundredth, and the largest unit of
// work, a piece, takes some microseconds.
const SumPiece = 64
