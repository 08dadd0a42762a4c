package details

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/slots"
)

// Details are figures that Stats leaves out because they take a pass over the index.
type Details struct {
	Stats    contract.Stats `json:"stats"`    // as returned by Table.Stats
	Lifetime contract.Stats `json:"lifetime"` // counters since the table was made

	TargetRows int   `json:"target_rows"` // mean number of rows per bucket above which slots are split
	Empty      int64 `json:"empty_slots"` // slots without a bucket
	MaxRows    int   `json:"max_rows"`    // maximum number of rows in a bucket, by the buckets' lengths
	// Occupancy counts the slots by the number of rows in their buckets, in ascending order,
	// without empty bins at the end. The index knows only the length of a bucket in units of the
	// device, so each bin stands for the numbers of rows that take the same number of units.
	Occupancy []OccupancyBin `json:"occupancy"`

	FilterBytes int `json:"filter_bytes_per_slot"` // 0: there are no filters
	// FilterProbes is the number of random keys that were looked up in the index; they are almost
	// certainly not in the table. FilterPositives is for how many of them the filter said that the
	// bucket may have them.
	FilterProbes    int64 `json:"filter_probes"`
	FilterPositives int64 `json:"filter_positives"`

	Directories []DirectoryDetails `json:"directories"`
}

// OccupancyBin counts the slots with MinRows to MaxRows rows.
type OccupancyBin struct {
	MinRows int   `json:"min_rows"`
	MaxRows int   `json:"max_rows"` // in the last bin, the maximum of the longest bucket
	Slots   int64 `json:"slots"`
}

// DirectoryDetails is one of a table's directories.
type DirectoryDetails struct {
	Dir         string `json:"dir"`
	Files       int    `json:"files"` // bucket files, and delta files of snapshots
	DiskBytes   int64  `json:"disk_bytes"`
	LiveBytes   int64  `json:"live_bytes"`    // of buckets in use
	HeldBytes   int64  `json:"held_bytes"`    // of files that are kept only for snapshots, delta files included
	DyingBytes  int64  `json:"dying_bytes"`   // of files being deleted
	BudgetBytes int64  `json:"budget_bytes"`  // 0: no limit
	Direct      bool   `json:"direct"`        // reads bypass the page cache
	Engine      string `json:"engine"`        // the interface used for reads, for example io_uring
	QueueDepth  int    `json:"queue_depth"`   // maximum number of reads in flight
	MaxInFlight int64  `json:"max_in_flight"` // highest number of reads in flight since the table was opened
}

// IndexBytesPerMillionKeys is the memory of index and filters per million rows of the table; 0 for
// an empty table.
func (d *Details) IndexBytesPerMillionKeys() float64 {
	return 1e6 * contract.Ratio(d.Stats.IndexBytes, d.Stats.Rows)
}

// MeasuredFalsePositiveRate is the share of absent keys that the filters take for present ones.
// Absent keys of slots without a bucket count as recognized. It is NaN without probes.
func (d *Details) MeasuredFalsePositiveRate() float64 {
	if d.FilterProbes == 0 {
		return math.NaN()
	}
	return float64(d.FilterPositives) / float64(d.FilterProbes)
}

const (
	filterProbes = 1 << 20 // enough to measure a rate of 0.1 % to 3 %
	probeChunk   = 1024
)

// Index is the index of a table.
type Index struct {
	Slots *slots.Index
	Mutex *sync.RWMutex // guards Slots
	Unit  int           // of the table, in bytes
	Words int           // of a row
}

// Count sets the figures in d that take a pass over the index. seed is for random keys.
func (x Index) Count(ctx context.Context, d *Details, seed uint64) error {
	x.Mutex.RLock()
	d.TargetRows, d.FilterBytes = x.Slots.TargetRows(), x.Slots.FilterBytes()
	x.Mutex.RUnlock()
	x.occupancy(d)
	return x.probeFilters(ctx, d, seed)
}

// occupancy counts slots by the rows in their buckets, as far as the buckets' lengths tell.
func (x Index) occupancy(d *Details) {
	x.Mutex.RLock()
	s := x.Slots.Stats(func(location uint64) int { return bucketfile.Location(location).Units() })
	x.Mutex.RUnlock()
	most := func(units int) int { return max(0, bucketfile.RowsIn(units*x.Unit, x.Words)) }
	d.Empty, d.MaxRows = int64(s.Empty), most(s.MaxSize)
	d.Occupancy = append(d.Occupancy, OccupancyBin{Slots: d.Empty})
	for i := 1; i <= min(s.MaxSize, len(s.Sizes)-1); i++ {
		bin := OccupancyBin{MinRows: most(i-1) + 1, MaxRows: most(i), Slots: int64(s.Sizes[i])}
		if i == len(s.Sizes)-1 {
			bin.MaxRows = d.MaxRows
		}
		if bin.MaxRows >= bin.MinRows || bin.Slots > 0 {
			d.Occupancy = append(d.Occupancy, bin)
		}
	}
}

// probeFilters looks up random keys in the index.
func (x Index) probeFilters(ctx context.Context, d *Details, seed uint64) error {
	if d.FilterBytes == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(uint64(d.Stats.Rows), seed))
	var hashes [probeChunk]uint64
	var in [probeChunk]uint32
	var locations [probeChunk]uint64
	for d.FilterProbes < filterProbes {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range hashes {
			hashes[i] = random.Uint64() // the hash is a bijection, so a random hash is that of a random key
		}
		x.Mutex.RLock()
		x.Slots.Lookup(hashes[:], in[:], locations[:])
		x.Mutex.RUnlock()
		for _, l := range locations {
			if l != 0 {
				d.FilterPositives++
			}
		}
		d.FilterProbes += probeChunk
	}
	return nil
}
