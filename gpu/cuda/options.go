package cuda

// Options are for checks and measurements.
type Options struct {
	NoEpilogues bool // devices do no product together with its epilogue
}
