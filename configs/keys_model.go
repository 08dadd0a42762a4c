package configs

import (
	"fmt"
	"strings"
)

// ModelKinds are the models of the zoo.
var ModelKinds = []string{"aibox", "dlrm", "wide_deep", "deepfm", "dcn", "dcn_v2", "fm", "lr"}

var (
	embeddedKinds = []string{"aibox", "dlrm", "wide_deep", "deepfm", "dcn", "dcn_v2", "fm"}
	deepKinds     = []string{"aibox", "dlrm", "wide_deep", "deepfm", "dcn", "dcn_v2"}
	hiddenKinds   = []string{"dlrm", "wide_deep", "deepfm", "dcn", "dcn_v2"}
	crossKinds    = []string{"dcn", "dcn_v2"}
)

var modelKeys = []Key{
	{Path: "model.kind", Required: true, Values: ModelKinds,
		Meaning: "aibox: the paper's towers; dlrm: dot interactions; wide_deep; deepfm; dcn, dcn_v2: cross networks; fm: factorization machine; lr: logistic regression."},
	{Path: "model.embedding_dim", Default: "16", Range: "[1,4096]", When: []When{{Path: "model.kind", In: embeddedKinds}},
		Meaning: "Width of every embedding."},
	{Path: "model.bottom_layers", Range: "[1,65536]", MinItems: 1,
		When:        []When{{Path: "model.kind", In: []string{"dlrm"}}, {Only: needsDense, Note: "some column is dense"}},
		DefaultFrom: func(s scope) string { return fmt.Sprintf("[64, %d]", s.job.Model.EmbeddingDim) }, DefaultNote: "[64, embedding_dim]",
		Meaning: "Widths of the network over the dense features. The last is embedding_dim: its output interacts with the embeddings."},
	{Path: "model.hidden_layers", Default: "[128, 64]", Range: "[1,65536]", MinItems: 1, When: []When{{Path: "model.kind", In: hiddenKinds}},
		Meaning: "Widths of the deep network's hidden layers; of dlrm's top network. The single output comes after them."},
	{Path: "model.cross_layers", Default: "3", Range: "[1,64]", When: []When{{Path: "model.kind", In: crossKinds}},
		Meaning: "Number of cross layers."},
	{Path: "model.cross_rank", Default: "0", Range: "[0,65536]", When: []When{{Path: "model.kind", In: []string{"dcn_v2"}}},
		Meaning: "Rank of the cross matrices, which are then products of two thin ones. 0: full matrices."},
	{Path: "model.structure", Default: "parallel", Values: []string{"parallel", "stacked"}, When: []When{{Path: "model.kind", In: crossKinds}},
		Meaning: "parallel: the outputs of cross and deep network are joined; stacked: the deep network sits on the cross network."},
	{Path: "model.towers", When: []When{{Path: "model.kind", In: []string{"aibox"}}}, MinItems: 1,
		DefaultFrom: defaultTowers, DefaultNote: "one tower per group of dense columns, in order of first appearance; those without a group form the last",
		Meaning: "Towers, in order: each takes all embeddings and one kind of dense features, and hands its first and last hidden layers on to the next."},
	{Path: "model.towers[].name", DefaultFrom: func(s scope) string { return fmt.Sprintf("tower%d", lastIndex(s.path)+1) }, DefaultNote: "tower1, tower2, …",
		Meaning: "Name of the tower; a warm start matches towers by name."},
	{Path: "model.towers[].dense", Default: "[]", Meaning: "Its dense features: names of columns, or of groups of columns."},
	{Path: "model.towers[].layers", Default: "[128, 64]", Range: "[1,65536]", MinItems: 1, Meaning: "Widths of its hidden layers."},
	{Path: "model.activation", Default: "relu", Values: []string{"relu", "leaky_relu", "tanh", "sigmoid", "identity"}, When: []When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Activation of hidden layers."},
	{Path: "model.dropout", Default: "0", Range: "[0,1)", When: []When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Share of hidden units dropped in training."},
	{Path: "model.batch_norm", Default: "false", When: []When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Batch normalization of hidden layers."},
	{Path: "model.pooling", Default: "sum", Values: []string{"sum", "mean"}, Tuning: true,
		Meaning: "How the embeddings of a field with several values become one."},
}

var optimizerKeys = []Key{
	{Path: "optimizer.dense", Meaning: "Optimizer of the dense network."},
	{Path: "optimizer.dense.kind", Default: "adam", Values: []string{"sgd", "momentum", "adagrad", "adam", "adamw"}, Meaning: "Kind of optimizer."},
	{Path: "optimizer.dense.learning_rate", Range: "(0,1000]",
		DefaultFrom: func(s scope) string {
			if strings.HasPrefix(s.job.Optimizer.Dense.Kind, "adam") {
				return "0.001"
			}
			return "0.01"
		}, DefaultNote: "0.001 for adam and adamw, otherwise 0.01",
		Meaning: "Learning rate, before the schedule."},
	{Path: "optimizer.dense.momentum", Default: "0.9", Range: "[0,1)", When: denseKinds("momentum"), Meaning: "Share of the last step that is kept."},
	{Path: "optimizer.dense.beta1", Default: "0.9", Range: "[0,1)", When: denseKinds("adam", "adamw"), Meaning: "Decay of the gradient's mean.", Tuning: true},
	{Path: "optimizer.dense.beta2", Default: "0.999", Range: "[0,1)", When: denseKinds("adam", "adamw"), Meaning: "Decay of the squared gradient's mean.", Tuning: true},
	{Path: "optimizer.dense.epsilon", Default: "1e-8", Range: "(0,1]", When: denseKinds("adagrad", "adam", "adamw"), Meaning: "Keeps the denominator from zero.", Tuning: true},
	{Path: "optimizer.dense.initial_accumulator", Default: "0", Range: "[0,1e6]", When: denseKinds("adagrad"), Meaning: "Start of the sum of squared gradients.", Tuning: true},
	{Path: "optimizer.dense.l2", Default: "0", Range: "[0,1000]", When: denseKinds("sgd", "momentum", "adagrad", "adam"), Meaning: "L2 penalty, added to the gradient.", Tuning: true},
	{Path: "optimizer.dense.weight_decay", Default: "0.01", Range: "[0,1)", When: denseKinds("adamw"), Meaning: "Decoupled weight decay, times the learning rate."},

	{Path: "optimizer.rows", Meaning: "Optimizer of embedding rows. Only the rows that occur in a mini-batch change."},
	{Path: "optimizer.rows.kind", Default: "adagrad", Values: []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"},
		Meaning: "Kind of optimizer. rowwise_adagrad keeps one number of state per row instead of one per value; ftrl makes weights sparse."},
	{Path: "optimizer.rows.learning_rate", Range: "(0,1000]",
		DefaultFrom: func(s scope) string {
			if s.job.Optimizer.Rows.Kind == "adam" {
				return "0.001"
			}
			return "0.05"
		}, DefaultNote: "0.001 for adam, otherwise 0.05",
		Meaning: "Learning rate, before the schedule; ftrl's alpha."},
	{Path: "optimizer.rows.beta1", Default: "0.9", Range: "[0,1)", When: rowKinds("adam"), Meaning: "Decay of the gradient's mean.", Tuning: true},
	{Path: "optimizer.rows.beta2", Default: "0.999", Range: "[0,1)", When: rowKinds("adam"), Meaning: "Decay of the squared gradient's mean.", Tuning: true},
	{Path: "optimizer.rows.epsilon", Default: "1e-8", Range: "(0,1]", When: rowKinds("adagrad", "rowwise_adagrad", "adam"), Meaning: "Keeps the denominator from zero.", Tuning: true},
	{Path: "optimizer.rows.initial_accumulator", Default: "0", Range: "[0,1e6]", When: rowKinds("adagrad", "rowwise_adagrad"), Meaning: "Start of the sum of squared gradients.", Tuning: true},
	{Path: "optimizer.rows.l2", Default: "0", Range: "[0,1000]", When: rowKinds("sgd", "adagrad", "rowwise_adagrad", "adam"), Meaning: "L2 penalty on the rows of a mini-batch, added to the gradient.", Tuning: true},
	{Path: "optimizer.rows.ftrl_l1", Default: "0", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "L1 penalty: weights stay zero until the evidence exceeds it."},
	{Path: "optimizer.rows.ftrl_l2", Default: "0", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "L2 penalty."},
	{Path: "optimizer.rows.ftrl_beta", Default: "1", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "Slows down the first steps."},

	{Path: "optimizer.schedule", Meaning: "Multiplies both learning rates, by mini-batch.", Tuning: true},
	{Path: "optimizer.schedule.warmup_steps", Default: "0", Range: "[0,inf)", Meaning: "The multiplier grows from 0 to 1 over so many mini-batches."},
	{Path: "optimizer.schedule.decay", Default: "none", Values: []string{"none", "linear", "cosine", "exponential", "inverse_sqrt"}, Meaning: "How the multiplier falls after the warm-up."},
	{Path: "optimizer.schedule.decay_steps", Range: "[1,inf)", Required: true, When: scheduleKinds("linear", "cosine", "exponential", "inverse_sqrt"),
		Meaning: "linear, cosine: mini-batches after the warm-up until the floor; exponential: per factor decay_rate; inverse_sqrt: s steps after the warm-up the multiplier is 1/sqrt(1 + s/decay_steps)."},
	{Path: "optimizer.schedule.decay_rate", Default: "0.5", Range: "(0,1)", When: scheduleKinds("exponential"), Meaning: "Factor per decay_steps."},
	{Path: "optimizer.schedule.floor", Default: "0", Range: "[0,1]", When: scheduleKinds("linear", "cosine", "exponential", "inverse_sqrt"), Meaning: "Smallest multiplier after the warm-up."},
}

func denseKinds(kinds ...string) []When {
	return []When{{Path: "optimizer.dense.kind", In: kinds}}
}

func rowKinds(kinds ...string) []When { return []When{{Path: "optimizer.rows.kind", In: kinds}} }

func scheduleKinds(kinds ...string) []When {
	return []When{{Path: "optimizer.schedule.decay", In: kinds}}
}

// needsDense is the condition of model.bottom_layers.
func needsDense(s scope) string {
	if len(s.job.DenseColumns()) > 0 {
		return ""
	}
	return "no column is dense, so there is nothing for the bottom network"
}
