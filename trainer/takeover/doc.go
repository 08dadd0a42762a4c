// Package takeover decides what of an earlier model goes over into the model of a run that starts
// from it: parameters, optimizer state, statistics of the data, and what becomes of its rows. The
// log says what starts fresh, and where settings that the weights depend on are others. Package
// warmstart matches and copies the values; package trainer opens the tables.
package takeover
