// Package metrics measures the quality of predictions and writes the results.
//
// An Accumulator takes logits with labels and weights, mini-batch by mini-batch in the order of the
// examples. It makes a Report of them: log loss, normalized entropy, calibration, AUC (exact, and
// streaming with its error bound), and AUC within groups. Package internal/score explains how each
// is computed, and why the bits of a report depend only on the examples and their order.
//
// Two writers record reports and other figures over time:
//
//   - JSONLWriter appends one JSON object per line.
//   - EventWriter writes the event files that TensorBoard shows.
//
// # Memory
//
//	exact AUC            4 bytes per example, 8 once a weight is not 1
//	group AUC            16 bytes per example
//	streaming AUC        1 MiB
//
// The lists of the exact and the group AUC grow by a quarter at a time. Options.MaxExactExamples
// bounds both. With more examples, the streaming AUC replaces the exact one (Report.AUCExact
// becomes false, and AUCError is the bound of its error), and the group AUC is that of a sample of
// the groups (Report.GroupShare).
//
// # Terms that differ between papers
//
// COPC is clicks over predicted clicks, so it is above 1 if predictions are too low. Log loss and
// entropies are in nats. Group AUC weights groups by impressions (Zhu et al., KDD 2017, §5), and
// leaves out groups that have only clicks or none.
//
// An Accumulator belongs to one goroutine; the writers may be shared.
package metrics
