// Package ops is the vocabulary of click-through-rate models as Gorgonia ops:
// fused layers, bag pooling, feature interactions and the loss, each with its
// symbolic derivative in terms of further ops of this package. A model is an
// expression graph of them. The differentiated graph holds nothing but these ops and
// one constant, so that package program can lower it to the steps that an engine runs:
// Describe gives the attributes of a node's op, Children its operands in order.
//
// Gorgonia's tape machine runs a graph op by op through the methods Do, which are the slow and
// obvious form of every op. Only tests use them: engines are compared with them, bit for bit if an
// engine computes in float32 on the host.
//
// # Shapes
//
// Everything is float32 and row-major. A matrix is (N, C), one example per row. Several vectors per
// example are adjacent, so (N, F, D) is stored and typed as (N, F*D). Logits and other results with
// one number per example are (N, 1). The loss is a scalar.
//
// # Ops own their results
//
// The tape machine drops its memory at every Reset, so with Gorgonia's own preallocation the
// activations of the whole network would be allocated anew at every step. Each op of this package
// therefore keeps its result buffer and returns the same memory at every run, overwritten
// completely. So an op belongs to one node of one graph, and two machines must not run a graph at
// once. Values read from a node are valid until the graph runs again.
//
// # Inputs of changing length
//
// Gorgonia fixes shapes when a graph is built, but the number of features of a
// mini-batch is never the same twice. Ops take their lengths from the values
// they are given, not from the nodes, and Input lets an input node's value
// change its shape between two runs.
//
// # Derivatives
//
// Every op implements gorgonia.SDOp, so gorgonia.Grad differentiates graphs of them. Grad of this
// package does the same, but adds gradients that meet by one Sum, in the order in which the ops
// were created, last first. So the result holds no op of Gorgonia's.
//
// # Determinism
//
// Every number has one fixed order of operations: matrix products are chains
// of fused multiply-adds over k, sums are sequential or kernel reductions, and
// work is divided among threads by output element only.
package ops
