// Package takeover decides what a run takes over from the model that it starts from: parameters,
// optimizer state, statistics of the data, and rows. The log says what starts fresh, and which
// settings differ that the weights depend on. Package warmstart matches and copies the values, and
// package trainer opens the tables.
package takeover
