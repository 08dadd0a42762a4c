// Package densefile defines the contents of the dense file of a model or a snapshot: the parameters
// and buffers of the network, the state of the optimizers, and their names. Package tensorfile
// reads and writes such a file.
package densefile
