package cuda

// Options are for checks and measurements.
type Options struct {
	NoEpilogues bool // devices do no product together with its epilogue
	Chain       bool // the operations of a graph run one after the other
}
