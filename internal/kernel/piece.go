package kernel

// SumPiece is how many numbers are added up one after the other where there may be very many of them, as of the gradients of a row that
// occurs in most examples of a mini-batch: those behind them begin a sum of their own, and the sums of such
// pieces are added up in their order. So several threads can work on one sum, the result does not depend on how many
// they are, and rounding errors grow with the number of pieces and not with that of numbers.
const SumPiece = 64
