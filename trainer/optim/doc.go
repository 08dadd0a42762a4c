// Package optim updates the parameters of the dense network (Dense) and the rows of the sparse
// table (Rows), at a rate that follows a Schedule.
//
// The formulas are PyTorch's (torch.optim; SparseAdam for rows), so settings carry over. Below, w
// is a parameter, g its gradient, lr the learning rate times the schedule's multiplier, and t the
// number of the step; the first step of w with its current state is 1 (see steps.go). L2 is applied
// first, only after weight decay, for every kind and to biases as well as weights:
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
// Package decay does the weight decay of rows, w -= lr weight_decay w in every step before the
// update. It also does table_l2, which shrinks every row at a rate divided by the row's own
// denominators.
//
// Averages of the dense parameters over the last steps are in average.go.
//
// # Determinism
//
// Everything is a function of parameters, state, gradient and t. Nothing else is kept, so training
// resumes from the saved state with the same bits. Every product that is then added is rounded
// first, by an explicit conversion, since Go may otherwise fuse the two. Square roots are exact
// everywhere. Powers and the schedules' cosine are computed here, from products, sums and square
// roots, not by package math, whose functions differ between processors.
//
// Nothing here starts goroutines. Different rows, and different Dense objects,
// may be updated at the same time.
package optim
