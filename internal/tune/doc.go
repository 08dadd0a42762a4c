// Package tune finds settings of a job by trying them.
//
// A trial is the job with some of its settings changed: learning rates, L2 penalties, and
// sizes of the network (space.go). Trial 0 is the job as it is. The others are drawn so that
// each value of a setting occurs about as often as any other (Draw).
//
// The trials go through successive halving (Jamieson and Talwalkar, 2016), which here keeps a
// third: all of them train on the first small part of the data, the best third of them on three times
// as much, and so on, until the last three and trial 0 train on all of it (halving.go). In
// each of these rounds, the end of the part is not trained on; by that the trials are
// compared. The data are in the order of time, so a trial is judged by how well it predicts what
// comes after its data, as a night's model is. data.eval are not read.
//
// The number of epochs is not drawn. A trial trains for several epochs as long as each one
// improves what is measured, and the best of them counts.
//
// Every result is written to a journal at once (journal.go). When the same search is begun
// again, it takes the results from there and goes on.
package tune
