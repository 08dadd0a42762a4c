package configs

import (
	"fmt"
	"slices"
	"strings"

	"aibox/configs/internal/schema"
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
		Meaning: "aibox has the towers of the paper; dlrm has dot-product interactions; dcn and dcn_v2 have cross networks; fm is a factorization machine and lr logistic regression; the others are wide_deep and deepfm."},
	{Path: "model.embedding_dim", Default: "16", Range: "[1,4096]", When: []schema.When{{Path: "model.kind", In: embeddedKinds}},
		Meaning: "Width of every embedding."},
	{Path: "model.bottom_layers", Range: "[1,65536]", MinItems: 1,
		When:        []schema.When{{Path: "model.kind", In: []string{"dlrm"}}, {Only: needsDense, Needs: "data.columns", Note: "some column is dense"}},
		DefaultFrom: func(s schema.Scope) string { return fmt.Sprintf("[64, %d]", jobOf(s).Model.EmbeddingDim) }, DefaultNote: "[64, embedding_dim]",
		Meaning: "Widths of the layers of the network over the dense features. The last must equal embedding_dim, because its output interacts with the embeddings."},
	{Path: "model.hidden_layers", Default: "[128, 64]", Range: "[1,65536]", MinItems: 1, When: []schema.When{{Path: "model.kind", In: hiddenKinds}},
		Meaning: "Widths of the hidden layers of the deep network (in dlrm, the top network). The output layer, of width 1, follows them."},
	{Path: "model.cross_layers", Default: "3", Range: "[1,64]", When: []schema.When{{Path: "model.kind", In: crossKinds}},
		Meaning: "Number of cross layers."},
	{Path: "model.cross_rank", Default: "0", Range: "[0,65536]", When: []schema.When{{Path: "model.kind", In: []string{"dcn_v2"}}},
		Meaning: "Rank of the cross matrices, each of which is the product of two thin ones. 0 means full matrices."},
	{Path: "model.structure", Default: "parallel", Values: []string{"parallel", "stacked"}, When: []schema.When{{Path: "model.kind", In: crossKinds}},
		Meaning: "With parallel, the outputs of the cross network and the deep network are concatenated. With stacked, the output of the cross network is the input of the deep network."},
	{Path: "model.towers", Whole: true, When: []schema.When{{Path: "model.kind", In: []string{"aibox"}}}, MinItems: 1,
		DefaultFrom: defaultTowers, DefaultNote: "one tower per group of dense columns, in order of first appearance; the columns without a group form the last tower, tower1",
		Meaning: "The towers, in order. Each takes all embeddings and one group of dense features, and passes its first and last hidden layers on to the next tower."},
	{Path: "model.towers[].name", DefaultFrom: func(s schema.Scope) string { return fmt.Sprintf("tower%d", s.Index()+1) }, DefaultNote: "tower1, tower2, …",
		Meaning: "Name of the tower. A warm start matches towers by name."},
	{Path: "model.towers[].dense", Default: "[]", Meaning: "Dense features of the tower: names of columns, or of groups of columns."},
	{Path: "model.towers[].layers", Default: "[128, 64]", Range: "[1,65536]", MinItems: 1, Meaning: "Widths of the tower's hidden layers."},
	{Path: "model.dense_vectors", Default: "false", Tuning: true,
		When:    []schema.When{{Path: "model.kind", In: []string{"fm", "deepfm"}}, {Only: needsDense, Needs: "data.columns", Note: "some column is dense"}},
		Meaning: "Whether dense features take part in the interactions of the factorization machine. Each then has its own vector, which is multiplied by the feature."},
	{Path: "model.activation", Default: "relu", Values: []string{"relu", "leaky_relu", "tanh", "sigmoid", "identity"}, When: []schema.When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Activation function of the hidden layers."},
	{Path: "model.embedding_activation", Default: "identity", Values: []string{"relu", "leaky_relu", "tanh", "sigmoid", "identity"}, When: []schema.When{{Path: "model.kind", In: []string{"aibox"}}}, Tuning: true, Later: true,
		Meaning: "Activation function of the pooled embeddings. The paper uses relu, but a value that becomes negative gets no gradient behind relu, so most values die in training. Models from versions without this key use the activation of the hidden layers."},
	{Path: "model.dropout", Default: "0", Range: "[0,1)", When: []schema.When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Share of the hidden units that is dropped in training."},
	{Path: "model.batch_norm", Default: "false", When: []schema.When{{Path: "model.kind", In: deepKinds}}, Tuning: true,
		Meaning: "Whether hidden layers have batch normalization."},
	{Path: "model.initial_bias", Default: "auto", Values: []string{"auto"}, Range: "[-50,50]", Tuning: true,
		Meaning: "Initial bias of the output. With auto, it is the log odds of the positives among the first 65,536 training examples, so that a new model starts by predicting their share. Examples count by their weights, negative_sampling applies, and half an example of mean weight is added to each class. 0 corresponds to equally many positives and negatives. A warm start continues from the earlier model's bias, shifted if data.negative_sampling differs."},
	{Path: "model.pooling", Default: "sum", Values: []string{"sum", "mean"}, Tuning: true,
		Meaning: "How the embeddings of a field with several values are combined into one, unless the column sets its own pooling."},
}

// linearKinds are the models whose rows begin with a linear weight, beside an embedding.
var linearKinds = []string{"fm", "wide_deep", "deepfm"}

// linearKeys are the keys of optimizer.linear: those of optimizer.rows.
func linearKeys() []Key {
	keys := []Key{{Path: "optimizer.linear", Tuning: true, When: []schema.When{{Path: "model.kind", In: linearKinds}},
		Meaning: "Optimizer of the linear weights, both of embedding rows and of dense features. It has the keys of optimizer.rows. Without it, optimizer.rows and optimizer.dense apply to them too. The wide_deep paper uses ftrl with an L1 penalty. The bias belongs to the dense network."}}
	for _, k := range optimizerKeys {
		rest, ok := strings.CutPrefix(k.Path, "optimizer.rows.")
		if !ok {
			continue
		}
		k.Path = "optimizer.linear." + rest
		k.When = slices.Clone(k.When)
		for i := range k.When {
			k.When[i].Path = ".kind"
		}
		if rest == "learning_rate" {
			k.DefaultFrom = func(s schema.Scope) string {
				if s.Parent.Addr().Interface().(*RowOptimizer).Kind == "adam" {
					return "0.001"
				}
				return "0.05"
			}
			k.DefaultNote = "0.001 for adam, otherwise 0.05"
		}
		keys = append(keys, k)
	}
	return keys
}

var optimizerKeys = []Key{
	{Path: "optimizer.dense", Meaning: "Optimizer of the dense network."},
	{Path: "optimizer.dense.kind", Default: "adam", Values: []string{"sgd", "momentum", "adagrad", "adam", "adamw"}, Meaning: "Kind of optimizer."},
	{Path: "optimizer.dense.learning_rate", Range: "(0,1000]",
		DefaultFrom: func(s schema.Scope) string {
			if strings.HasPrefix(jobOf(s).Optimizer.Dense.Kind, "adam") && slices.Contains(deepKinds, jobOf(s).Model.Kind) {
				return "0.001"
			}
			return "0.01"
		}, DefaultNote: "0.001 for adam and adamw unless model.kind is lr or fm, otherwise 0.01",
		Meaning: "Learning rate, before the schedule."},
	{Path: "optimizer.dense.momentum", Default: "0.9", Range: "[0,1)", When: denseKinds("momentum"), Meaning: "Share of the previous step that is kept."},
	{Path: "optimizer.dense.beta1", Default: "0.9", Range: "[0,1)", When: denseKinds("adam", "adamw"), Meaning: "Decay of the gradient's mean.", Tuning: true},
	{Path: "optimizer.dense.beta2", Default: "0.999", Range: "[0,1)", When: denseKinds("adam", "adamw"), Meaning: "Decay of the squared gradient's mean.", Tuning: true},
	{Path: "optimizer.dense.epsilon", Default: "1e-8", Range: "(0,1]", When: denseKinds("adagrad", "adam", "adamw"), Meaning: "Keeps the denominator from zero.", Tuning: true},
	{Path: "optimizer.dense.initial_accumulator", Default: "0", Range: "[0,1e6]", When: denseKinds("adagrad"), Meaning: "Start of the sum of squared gradients.", Tuning: true},
	{Path: "optimizer.dense.l2", Default: "0", Range: "[0,1000]", When: denseKinds("sgd", "momentum", "adagrad", "adam"), Meaning: "L2 penalty, added to the gradient.", Tuning: true},
	{Path: "optimizer.dense.weight_decay", Default: "0.01", Range: "[0,1)", When: denseKinds("adamw"), Meaning: "Decoupled weight decay, which is multiplied by the learning rate."},
	{Path: "optimizer.dense.averaging", Default: "0", Range: "[0,1)", Tuning: true,
		Meaning: "Predict with an exponential moving average of the dense network, which keeps this share of itself in each step and so spans about 1 / (1 - averaging) steps. 0.98 is a good value. Training itself continues without the average. Averaging smooths the noise that mini-batches leave at a high learning rate and costs nothing at serving time. Rows of the table and the statistics of batch_norm are not averaged. 0 means no average."},

	{Path: "optimizer.rows", Meaning: "Optimizer of embedding rows. Only weight_decay and table_l2 change rows that do not occur in a mini-batch."},
	{Path: "optimizer.rows.kind", Default: "adagrad", Values: []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"},
		Meaning: "Kind of optimizer. rowwise_adagrad keeps one number of state per row instead of one per value; ftrl makes weights sparse."},
	{Path: "optimizer.rows.learning_rate", Range: "(0,1000]",
		DefaultFrom: func(s schema.Scope) string {
			switch kind := jobOf(s).Optimizer.Rows.Kind; {
			case kind == "adam":
				return "0.001"
			case strings.HasSuffix(kind, "adagrad") && jobOf(s).Model.Kind == "lr":
				return "0.1"
			}
			return "0.05"
		}, DefaultNote: "0.001 for adam, 0.1 for adagrad and rowwise_adagrad if model.kind is lr, otherwise 0.05",
		Meaning: "Learning rate, before the schedule. For ftrl it is alpha."},
	{Path: "optimizer.rows.beta1", Default: "0.9", Range: "[0,1)", When: rowKinds("adam"), Meaning: "Decay of the gradient's mean.", Tuning: true},
	{Path: "optimizer.rows.beta2", Default: "0.999", Range: "[0,1)", When: rowKinds("adam"), Meaning: "Decay of the squared gradient's mean.", Tuning: true},
	{Path: "optimizer.rows.epsilon", Default: "1e-8", Range: "(0,1]", When: rowKinds("adagrad", "rowwise_adagrad", "adam"), Meaning: "Keeps the denominator from zero.", Tuning: true},
	{Path: "optimizer.rows.initial_accumulator", Default: "0", Range: "[0,1e6]", When: rowKinds("adagrad", "rowwise_adagrad"), Meaning: "Start of the sum of squared gradients.", Tuning: true},
	{Path: "optimizer.rows.l2", Default: "0", Range: "[0,1000]", When: rowKinds("sgd", "adagrad", "rowwise_adagrad", "adam"), Meaning: "L2 penalty on the rows of a mini-batch, added to the gradient.", Tuning: true},
	{Path: "optimizer.rows.weight_decay", Default: "0", Range: "[0,1e6]", When: rowKinds("sgd", "adagrad", "rowwise_adagrad", "adam"), Tuning: true,
		Meaning: "Decoupled weight decay of all rows, which regularizes rare keys as well: each optimizer step multiplies the values of every admitted row by 1 - learning_rate × weight_decay, with the scheduled learning rate. The product must be below 1. Rows outside the mini-batch catch up when they are next read. A value above 0 takes 4 bytes per row."},
	{Path: "optimizer.rows.table_l2", Default: "0", Range: "[0,1000]", When: rowKinds("adagrad", "rowwise_adagrad"), Tuning: true,
		Meaning: "L2 penalty on all rows in every step, as on a dense embedding table: it includes rows that are not in the mini-batch and rows whose gradients in it are 0. Each step shrinks the values of a row by learning_rate × table_l2 divided by the root of its mean sum of squared gradients, with the scheduled learning rate. Rare rows are therefore penalized more than frequent ones, and a row that has had no gradient other than 0 does not change. The penalty is relative to the mean loss of an example, so it should be smaller the more examples there are: about 5 divided by their number is a good start. It cannot be combined with weight_decay, whether in optimizer.rows or in optimizer.linear. A value above 0 takes 4 bytes per row."},
	{Path: "optimizer.rows.ftrl_l1", Default: "0", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "L1 penalty. A weight stays zero until its accumulated gradient exceeds it."},
	{Path: "optimizer.rows.ftrl_l2", Default: "0", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "L2 penalty."},
	{Path: "optimizer.rows.ftrl_beta", Default: "1", Range: "[0,1000]", When: rowKinds("ftrl"), Meaning: "The beta of ftrl. It makes the first steps smaller."},

	{Path: "optimizer.schedule", Meaning: "A multiplier of both learning rates, as a function of the mini-batch number.", Tuning: true},
	{Path: "optimizer.schedule.warmup_steps", Default: "0", Range: "[0,inf)", Meaning: "The multiplier grows from 0 to 1 over this many mini-batches."},
	{Path: "optimizer.schedule.decay", Default: "none", Values: []string{"none", "linear", "cosine", "exponential", "inverse_sqrt"}, Meaning: "How the multiplier falls after the warm-up."},
	{Path: "optimizer.schedule.decay_steps", Range: "[1,inf)", Required: true, When: scheduleKinds("linear", "cosine", "exponential", "inverse_sqrt"),
		Meaning: "For linear and cosine, the number of mini-batches after the warm-up until the multiplier reaches floor. For exponential, the number of mini-batches per factor of decay_rate. For inverse_sqrt, the multiplier is 1/sqrt(1 + s/decay_steps), s mini-batches after the warm-up."},
	{Path: "optimizer.schedule.decay_rate", Default: "0.5", Range: "(0,1)", When: scheduleKinds("exponential"), Meaning: "Factor of the multiplier per decay_steps mini-batches."},
	{Path: "optimizer.schedule.floor", Default: "0", Range: "[0,1]", When: scheduleKinds("linear", "cosine", "exponential", "inverse_sqrt"), Meaning: "Smallest multiplier after the warm-up."},
}

func denseKinds(kinds ...string) []schema.When {
	return []schema.When{{Path: "optimizer.dense.kind", In: kinds}}
}

func rowKinds(kinds ...string) []schema.When {
	return []schema.When{{Path: "optimizer.rows.kind", In: kinds}}
}

func scheduleKinds(kinds ...string) []schema.When {
	return []schema.When{{Path: "optimizer.schedule.decay", In: kinds}}
}

// needsDense is the condition of model.bottom_layers.
func needsDense(s schema.Scope) string {
	if len(jobOf(s).DenseColumns()) > 0 {
		return ""
	}
	return "no column is dense"
}
