package gpu

import "aibox/internal/cores"

// fewestAwake is from how many processors on there are enough for others beside a thread that waits awake.
const fewestAwake = 4

// WaitsAwake reports whether a thread that waits for something which takes microseconds looks for
// it a while before it sleeps: on a virtual machine it is woken some 50 microseconds later, and a
// step of a small mini-batch may take a device no more than 200.
func WaitsAwake() bool { return cores.Count() >= fewestAwake }
