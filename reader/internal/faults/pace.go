package faults

// pace computes an upper bound on the number of remaining rows of the input. From it follows
// whether a limit on the share of bad rows is exceeded even if all remaining rows are good.
//
// Parquet footers contain the number of rows. For text, only the remaining stored bytes are known:
// they are assumed to hold at most slack times as many rows per byte as the densest unit so far.
// The densest unit is used instead of the average, so that a stretch of long garbage lines does not
// lower the estimate. The unit that is being read counts as remaining.
//
// Reading an input without a good row thus ends after about slack times the allowed share of its
// bytes: with 10 TB and a limit of 0.01, after 200 GB.
type pace struct {
	total   int64 // stored bytes of the input
	slack   float64
	rows    int64   // of the input; < 0: not known. This and what follows is set by Tally.Restore
	read    int64   // stored bytes of the units that were read
	inUnit  int64   // rows of the unit that is being read
	density float64 // rows per byte in the densest unit; 0: no unit has been read
}

const (
	// usualSlack allows the rows of the rest to be half as long on average.
	usualSlack = 2
	// mixedSlack is for inputs with several compression formats: the rows per byte in files of one
	// format say little about files of another. One format can make a log about 16 times smaller
	// than another, or than none.
	mixedSlack = 16
)

func newPace(total int64, mixed bool) *pace {
	p := &pace{total: total, slack: usualSlack}
	if mixed {
		p.slack = mixedSlack
	}
	return p
}

// unit records the end of a unit of the given number of stored bytes.
func (p *pace) unit(bytes int64) {
	p.read += bytes
	p.density = max(p.density, float64(p.inUnit)/float64(bytes))
	p.inUnit = 0
}

// mostRows returns the maximum number of rows of the input, given the number read so far; ok is
// false as long as there is nothing to estimate it from.
func (p *pace) mostRows(read int64) (most float64, ok bool) {
	switch {
	case p.rows >= 0:
		return float64(max(p.rows, read)), true
	case p.density == 0:
		return 0, false
	}
	return float64(read) + p.slack*p.density*float64(max(p.total-p.read, 0)), true
}
