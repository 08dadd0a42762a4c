// Package model has the networks (the model zoo) that turn a mini-batch's pooled rows
// and dense features into one logit per example. Each is a Gorgonia expression graph made
// of the ops of package ops.
//
// # The models
//
// Every model has the same inputs. emb is the pooled rows of all fields side by side, (N, F*D).
// dense is the dense features, (N, P). MLP(…) is hidden layers, output(…) one linear layer to one
// logit.
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
// A row of lr is one weight. A row of fm, wide_deep and deepfm has the linear weight first and then
// the embedding, RowDim = 1 + D; the others have the embedding alone. Pooling treats all values of
// a row alike. Interactions are between fields: two features in one bag are added, not multiplied.
//
// Without dense features (P = 0) the parts that use them disappear. dlrm then has no bottom network
// and interacts the embeddings alone, and the input of its top network is only the dot products.
//
// A hidden layer is linear, batch normalization if asked for (the linear part then has no bias,
// since beta does its work), activation, dropout if asked for. dlrm's bottom network has no
// dropout, because its result is a factor of dot products.
//
// # Initial values
//
// Weights and biases of layers are uniform in ±1/√(fan-in), as in PyTorch's nn.Linear. Linear
// weights of dense features, the bias of lr and fm, and cross biases start at 0, gamma at 1, beta
// at 0. A job sets the bias of the output (OutputBias) to the log odds of its first examples, or to
// model.initial_bias. Value i of a parameter is a hash of (seed, the parameter's name, i). It does
// not depend on which other parameters there are, so the towers of a model start with the same
// values if another tower is added.
//
// # Programs
//
// New builds the graph for training and the one for inference once, and lowers them to programs
// (package program), which do not depend on the number of examples. Network hands the programs to
// an engine, with the memory of parameters and running statistics.
package model
