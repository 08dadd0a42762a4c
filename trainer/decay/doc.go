// Package decay shrinks embedding rows in every step of the optimizer, also in those in
// which they are not used: decoupled weight decay (Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization", ICLR 2019) of a table that is too large to be visited in
// every step.
//
// In step k a table that is decayed densely would multiply each row by
//
//	1 - learning_rate * schedule(k) * weight_decay
//
// The product of these factors over some steps depends on the steps alone. So a row keeps
// the last step that it was decayed for, in a word of its state that is called its clock.
// When it is used in step t, it is first multiplied by the product of the steps after
// that one and before t; the update of step t multiplies it by the factor of t, and sets the clock
// to t. Where a row is only read, by evaluation, prediction or export, a copy of it is
// multiplied by the product up to the model's last step. So rows have the bits that follow from
// the steps in which they were used, no matter when they were brought into memory.
//
// # L2 of the whole table
//
// With optim.RowConfig.TableL2 rows are held back as by an L2 penalty on a dense embedding table,
// whose gradient Adagrad divides by the root of a value's sum of squared gradients, as any other: a
// row that has had little gradient shrinks faster than one that is in every mini-batch. In step k
//
//	1 - learning_rate * schedule(k) * table_l2
//
// is raised to the power of 1/(sqrt(s) + epsilon), s being the mean of the sums of the row
// (Denominators), those of the first value apart: one exponential for a row, not one for each
// value, which learned as well. Sums change only when the row is used, so its decay between two
// uses is still one product: the penalty is not added to the sums. The update of a step changes
// them before the step's decay, which therefore waits: a row that was used in step t gets the clock
// t-1. A row whose sums are 0, since all of its gradients were 0 until now, stays as it is: divided
// by epsilon alone, it would be 0 after a step.
//
// # History
//
// Where the state of rows changes otherwise than by updates, in a warm start, all rows are decayed
// first. Rows whose sums are 0 then, since the optimizer is another one or values are new, have
// nothing to be divided by: they get the clock of a row that was never updated.
//
// Rates and schedules may change from one run to the next, and a row may have been used
// last many runs ago. So a model has the history of its rates (History): a segment for each
// change. Timeline sums up the logarithms of the factors from the first step on. With a
// schedule, the logarithms follow a curve, and their sum has no closed form: it is
// computed from pieces on which the curve is a straight line to within 1e-8 of its
// largest value (curve.go). Without one, there is one piece for each power of two, and the sum is exact.
//
// # Clocks
//
// A clock has 32 bits. 0 is the clock of a row that was never updated, which does not
// decay: its first values are those of a new row. Other clocks count steps modulo 2^32-1, from
// History.Base on. A warm start renews all clocks, by copying all rows, if more than 2^31
// steps have been counted; so only a run of over 2^31 steps can take a row that was not
// used for 2^32-1 steps for one that was.
package decay
