package profiled

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"aibox/gpu"
)

// kind is what an operation does.
type kind uint8

const (
	kernel     kind = iota
	product         // of matrices
	copyUp          // from the host
	copyDown        // to the host
	copyHost        // on the host
	copyDevice      // between devices, or within one
	fill
	sum // over devices
)

// operation is what is measured together.
type operation struct {
	kind           kind
	name           string // of a kernel
	precision      gpu.Precision
	transA, transB bool
	m, n, k        int    // of a product; m: numbers of a sum
	epilogue       string // of a product
	rounds         bool   // the product, to bfloat16
}

func (o operation) String() string {
	switch o.kind {
	case kernel:
		return o.name
	case product:
		side := func(trans bool) string { return map[bool]string{false: "N", true: "T"}[trans] }
		s := fmt.Sprintf("product %v %s%s m=%d n=%d k=%d", o.precision, side(o.transA), side(o.transB), o.m, o.n, o.k)
		if o.epilogue != "" {
			s += " " + o.epilogue
		}
		if o.rounds {
			s += " rounded"
		}
		return s
	case sum:
		return fmt.Sprintf("all-reduce of %d numbers", o.m)
	}
	return map[kind]string{
		copyUp: "copy from host", copyDown: "copy to host", copyHost: "copy on host", copyDevice: "copy between devices", fill: "fill",
	}[o.kind]
}

// Times are how long the operations of devices have taken. The zero value is ready for use, by one
// goroutine at a time.
type Times struct{ rows map[place]*row }

type place struct {
	device int
	operation
}

type row struct {
	calls int64
	bytes int64 // that all calls may read and write
	total time.Duration
}

func (t *Times) add(device int, o operation, bytes int64, took time.Duration) {
	if t.rows == nil {
		t.rows = map[place]*row{}
	}
	r := t.rows[place{device, o}]
	if r == nil {
		r = new(row)
		t.rows[place{device, o}] = r
	}
	r.calls++
	r.bytes += bytes
	r.total += max(took, 0)
}

// heading says what the columns are, for people and for programs, which skip lines that begin with #.
const heading = `# Time of each operation on each device, measured with events around it. Operations were enqueued one by one, not as
# captured graphs, so the job took longer than without this. Where a device waits for the host, a time has some microseconds of the
# launch in it; that of an all-reduce has waits for other devices. share is that of all measured time of the device. mb is what all
# calls may read and write, in millions of bytes (kernels of tables touch only some rows), and gb_per_s that in total_ms: near the
# bandwidth of the memory, an operation can become faster only by moving fewer bytes.
operation	device	calls	total_ms	mean_us	share	mb	gb_per_s
`

// Write writes a table of tab-separated values: for each device, the operations that have taken
// longest first.
func (t *Times) Write(w io.Writer) error {
	var places []place
	all := map[int]time.Duration{}
	for p, r := range t.rows {
		places = append(places, p)
		all[p.device] += r.total
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(t.rows[b].total, t.rows[a].total), cmp.Compare(a.String(), b.String()))
	})
	b := bufio.NewWriter(w)
	fmt.Fprint(b, heading)
	for _, p := range places {
		r := t.rows[p]
		fmt.Fprintf(b, "%v\t%d\t%d\t%.3f\t%.2f\t%.4f\t%.3f\t%.1f\n", p.operation, p.device, r.calls, r.total.Seconds()*1e3,
			r.total.Seconds()*1e6/float64(r.calls), r.total.Seconds()/max(all[p.device].Seconds(), 1e-12),
			float64(r.bytes)/1e6, float64(r.bytes)/1e9/max(r.total.Seconds(), 1e-12))
	}
	return b.Flush()
}
