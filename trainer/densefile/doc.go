// Package densefile says what is in the dense file of a model or a snapshot, and under which names:
// the parameters and buffers of the network, and the state of the optimizers. Package tensorfile
// reads and writes such a file.
package densefile
