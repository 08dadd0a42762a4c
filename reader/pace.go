package reader

// pace knows how many rows the rest of the input can have at most. On it depends
// whether a limit on the share of bad rows is exceeded whatever the rest turns out
// to be.
//
// The rows of Parquet stand in its footers. For text, what is known of the rest is
// its size in stored bytes: no part of it is taken to hold more rows to a byte than
// slack times what the densest unit so far held. Judging by the densest unit, and
// not by all that was read, a stretch of long garbage lines makes the rest look no
// shorter. The unit that is being read counts as part of the rest.
//
// An input that is bad throughout thus ends after about slack times the allowed
// share of its bytes: of 10 TB with a limit of 0.01, after 200 GB.
type pace struct {
	total   int64 // stored bytes of the input
	rows    int64 // of the input; < 0: not known
	slack   float64
	read    int64   // stored bytes of the units that were read
	inUnit  int64   // rows of the unit that is being read
	density float64 // rows to a byte in the densest unit; 0: no unit has been read
}

const (
	// usualSlack allows for rows of the rest that are half as long on average.
	usualSlack = 2
	// mixedSlack is for inputs of which a part is compressed, or compressed in
	// another way: bytes of one kind say little about those of another. Logs
	// compress up to some 16 times as well by one way as by another, or none.
	mixedSlack = 16
)

func newPace(files []*inputFile, total int64) pace {
	p := pace{total: total, rows: -1, slack: usualSlack}
	known := int64(0)
	for _, f := range files {
		if f.Compression != files[0].Compression {
			p.slack = mixedSlack
		}
		if f.parquet == nil {
			known = -1
		} else if known >= 0 {
			known += f.parquet.rows
		}
	}
	p.rows = known
	return p
}

// unit ends a unit of so many stored bytes.
func (p *pace) unit(bytes int64) {
	p.read += bytes
	p.density = max(p.density, float64(p.inUnit)/float64(bytes))
	p.inUnit = 0
}

// mostRows is how many rows the input can have at most, of which so many have been
// read; ok is false while nothing can be said.
func (p *pace) mostRows(read int64) (most float64, ok bool) {
	switch {
	case p.rows >= 0:
		return float64(max(p.rows, read)), true
	case p.density == 0:
		return 0, false
	}
	return float64(read) + p.slack*p.density*float64(max(p.total-p.read, 0)), true
}
