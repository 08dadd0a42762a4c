// Package decay shrinks embedding rows in every step of the optimizer, including steps that do not
// use them: decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
// ICLR 2019) of a table that is too large to be visited in every step.
//
// In step k a densely decayed table would multiply each row by
//
//	1 - learning_rate * schedule(k) * weight_decay
//
// The product of these factors over a range of steps depends only on the steps. So a row stores the
// last step that it was decayed for in a word of its state, its clock. When step t uses the row,
// the row is first multiplied by the product of the factors after its clock and before t. The
// update of step t then multiplies it by the factor of t and sets the clock to t. If a row is only
// read, by evaluation, prediction or export, a copy of it is multiplied by the product up to the
// model's last step. So the bits of a row follow from the steps that used it, no matter when it was
// brought into memory.
//
// # L2 of the whole table
//
// optim.RowConfig.TableL2 acts like an L2 penalty on a dense embedding table, whose gradient
// Adagrad divides, as any other, by the root of a value's sum of squared gradients: a row that has
// had little gradient shrinks faster than one that is in every mini-batch. In step k
//
//	1 - learning_rate * schedule(k) * table_l2
//
// is raised to the power of 1/(sqrt(s) + epsilon), where s is the mean of the row's sums
// (Denominators); the first value is treated apart. So there is one exponential per row instead of
// one per value, which learned as well. Sums change only when the row is used, since the penalty is
// not added to them, so the decay between two uses is still one product. The update of a step
// changes the sums before that step's decay, which therefore waits: a row that was used in step t
// gets the clock t-1. A row whose sums are 0, since all of its gradients have been 0, does not
// decay: divided by epsilon alone, it would be 0 after one step.
//
// # History
//
// If the state of rows changes other than by updates, as in a warm start, all rows are decayed
// first. Rows whose sums are then 0, because the optimizer is another one or values are new, have
// no denominator: they get the clock of a row that was never updated.
//
// Rates and schedules may change from one run to the next, and a row may not have been used for
// many runs. So a model stores the history of its rates (History), a segment for each change.
// Timeline sums up the logarithms of the factors from the first step on. With a schedule, the
// logarithms follow a curve, and their sum has no closed form. It is computed from pieces on which
// the curve is a straight line to within 1e-8 of its largest value (curve.go). Without a schedule,
// there is one piece for each power of two, and the sum is exact.
//
// # Clocks
//
// A clock has 32 bits. 0 is the clock of a row that was never updated. Such a row does not decay:
// its initial values are those of a new row. Other clocks count steps modulo 2^32-1, from
// History.Base on. If more than 2^31 steps have been counted, a warm start renews all clocks by
// copying all rows. So only a run of over 2^31 steps can mistake a row that was not used for 2^32-1
// steps for one that was.
package decay
