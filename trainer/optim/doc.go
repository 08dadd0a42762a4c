// Package optim updates parameters: those of the dense network (Dense), the
// rows of the sparse table (Rows), at a rate that follows a Schedule.
//
// The formulas are PyTorch's (torch.optim; SparseAdam for rows), so settings
// carry over. Below, w is a parameter, g its gradient, lr the learning rate
// times the schedule's multiplier, t the number of the step, 1 for the first that
// w takes with its present state (see steps.go). L2 comes first, but behind weight decay,
// for every kind, and for biases as for weights:
//
//	g += l2 w
//
//	sgd              w -= lr g
//	momentum         b = momentum b + g;  w -= lr b
//	adagrad          s += g^2;  w -= lr g / (sqrt(s) + eps)
//	rowwise_adagrad  s += mean over the row of g^2;  as adagrad, one s a row
//	adam (dense)     m += (1-beta1)(g - m);  v = beta2 v + (1-beta2) g^2
//	                 w -= lr/(1-beta1^t) m / (sqrt(v)/sqrt(1-beta2^t) + eps)
//	adamw            w -= lr weight_decay w;  then adam
//	adam (rows)      m, v as above, only when the row occurs (lazy)
//	                 w -= lr sqrt(1-beta2^t)/(1-beta1^t) m / (sqrt(v) + eps)
//	ftrl             see kernel.FTRL
//
// Weight decay of rows, w -= lr weight_decay w in every step before the update, is that of package
// decay, and so is table_l2, which shrinks all rows as their denominators say.
//
// Averages of the dense parameters over the last steps are those of average.go.
//
// # Determinism
//
// Everything is a function of parameters, state, gradient and t: nothing else
// is kept, so training resumes from the saved state with the same bits. Every
// product that a sum follows is rounded first, by an explicit conversion, as Go
// may otherwise fuse the two. Square roots are exact everywhere; powers and the
// schedules' cosine are computed here, from products, sums and square roots,
// not by package math, whose functions differ between processors.
//
// Nothing here starts goroutines. Different rows, and different Dense objects,
// may be updated at the same time.
package optim
