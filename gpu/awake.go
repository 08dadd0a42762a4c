package gpu

import "aibox/internal/cores"

// fewestAwake is the number of processors from which on a thread may busy-wait without starving
// others.
const fewestAwake = 4

// WaitsAwake reports whether a thread that waits for something that takes microseconds polls for a
// while before it sleeps: waking it takes about 50 microseconds on a virtual machine, and a device
// may need only 200 for a step of a small mini-batch.
func WaitsAwake() bool { return cores.Count() >= fewestAwake }
