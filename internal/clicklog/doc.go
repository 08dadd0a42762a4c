// Package clicklog writes generated examples (package generate) as files in any format
// that package reader knows. It also measures how well the true probabilities predict the
// labels that were written, which is the best that any model can do.
//
// A job's schema decides which column is which: the k-th dense column gets the
// generator's k-th number, the k-th sparse column the values of its k-th field.
// An example is a function of seed, day and its index within the day, so any
// part of a log can be drawn on its own and the bytes do not depend on threads.
package clicklog
