// Package tune finds settings of a job by trying them.
//
// A trial is the job with some of its settings changed: learning rates, L2 penalties, and network
// sizes (space.go). Trial 0 is the original job. The others are drawn so that all values of a
// setting occur about equally often (Draw).
//
// The trials go through successive halving (Jamieson and Talwalkar, 2016), which here keeps a
// third: all of them train on a small first part of the data, the best third on three times as
// much, and so on, until the last three and trial 0 train on all of it (halving.go). In each round,
// the end of the part is held out, and the trials are compared on it. The data are in time order,
// so a trial is judged by how well it predicts what comes after its training data, as a nightly
// model is. data.eval is not read.
//
// The number of epochs is not drawn. A trial trains for further epochs as long as each one improves
// the metric, and its best epoch counts.
//
// Every result is written to a journal immediately (journal.go). When the same search is started
// again, it resumes from the journal.
package tune
