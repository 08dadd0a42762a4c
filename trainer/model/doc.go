// Package model has the networks (the model zoo) that turn a mini-batch's pooled rows
// and dense features into one logit per example. Each is a Gorgonia expression graph made
// of the ops of package ops.
//
// # The models
//
// Every model sees the same inputs. emb is the pooled rows of all fields side
// by side, (N, F*D); dense is the dense features, (N, P). MLP(…) is hidden
// layers, output(…) one linear layer to one logit.
//
//	lr         Σ_f weight + dense·w + b
//	fm         lr + Σ_{f<g} <emb_f, emb_g>
//	           with DenseVectors, x_p·v_p of every dense feature p is one more emb
//	wide_deep  Σ_f weight + dense·w + output(MLP([emb, dense]))
//	deepfm     wide_deep + Σ_{f<g} <emb_f, emb_g>
//	dcn        output([cross(x), MLP(x)]), x = [emb, dense]; stacked: output(MLP(cross(x)))
//	dcn_v2     the same with matrices (or low-rank ones) in the cross layers
//	dlrm       z = bottom MLP(dense); output(MLP([z, dots of all pairs of z and emb_f]))
//	aibox      AIBox §2.2: see aibox.go
//
// Rows. lr's rows are one weight. fm, wide_deep and deepfm have the linear
// weight first and the embedding behind it, RowDim = 1 + D; the others have the
// embedding alone. Pooling treats the whole row alike. Interactions are between
// fields: two features in one bag are added, not multiplied.
//
// Without dense features (P = 0) the parts that use them disappear; dlrm then
// has no bottom network and interacts the embeddings alone, and its top network
// sees nothing but the dot products.
//
// A hidden layer is linear, batch normalization if asked for (the linear part
// then has no bias, beta does that work), activation, dropout if asked for.
// dlrm's bottom network has no dropout: its result is a factor of dot products.
//
// # Initial values
//
// Weights and biases of layers are uniform in ±1/√(fan-in), as PyTorch's nn.Linear; linear weights
// of dense features, the bias of lr and fm, and cross biases start at 0, gamma at 1, beta at 0. A
// job sets the bias of the output (OutputBias) to the log odds of its first examples, or to
// model.initial_bias. Value i of a parameter is a hash of (seed, the parameter's name, i): it does
// not depend on which other parameters there are, so a model with one more tower starts the other
// towers with the same values.
//
// # Programs
//
// New builds the graph for training and the one for inference once and lowers them to
// programs (package program), which do not depend on the number of examples. Network hands
// them to an engine, with the memory of parameters and running statistics.
package model
