package tablediff

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"os"

	"aibox/sparsetable"
)

// Options says what Compare reports and how much memory it takes.
type Options struct {
	MemoryBytes int64 // for the rows that are compared at one time
	Top         int   // length of Report.Moved
	// Fields are the names of the fields whose keys Keys visits. Keys calls visit for each of these
	// keys, once or more, with the index of its field. Keys is called once each time the tables are
	// read. A key that several fields share belongs to the first of them.
	Fields []string
	Keys   func(ctx context.Context, visit func(field int, key uint64)) error
	// OtherValues says that the values of the two tables' rows have different meanings.
	OtherValues bool
	// Progress, if it is set, is called before each of the steps.
	Progress func(step string, partition, of int)
}

// comparison is one run of Compare.
type comparison struct {
	o        Options
	from, to sparsetable.Table
	p        *partition
	report   *Report
	top      farthest
	later    *later
	seen     []sighting // the latest ones, by hash of the key; empty if there is only one partition
	// diskFailed says that no temporary files can be written.
	diskFailed bool
}

// sighting is a key of a field in a log, in which most keys occur many times.
type sighting struct {
	key   uint64
	field uint16 // 1 + number of the field
}

// If not all rows fit in memory at once, 1/laterShare of it is for chunks of temporary files, and
// 1/seenShare for sightings.
const (
	laterShare    = 4
	seenShare     = 16
	sightingBytes = 16
)

// Compare compares the rows of two tables, which must not be written meanwhile. Only trained rows
// count, as for sparsetable.Table.Scan, whose errors it returns.
func Compare(ctx context.Context, from, to sparsetable.Table, o Options) (*Report, error) {
	if len(o.Fields) >= math.MaxUint16 {
		return nil, fmt.Errorf("tablediff: %d fields are too many", len(o.Fields))
	}
	c := &comparison{o: o, from: from, to: to, top: farthest{n: o.Top}}
	dim := from.Layout().ValueDim
	c.report = &Report{Comparable: dim == to.Layout().ValueDim && !o.OtherValues}
	if !c.report.Comparable {
		dim = 0
	}
	if o.Keys != nil {
		for _, name := range append(o.Fields[:len(o.Fields):len(o.Fields)], "") {
			c.report.Fields = append(c.report.Fields, Group{Field: name})
		}
	}
	before, after := from.Stats().Rows, to.Stats().Rows
	// The number of rows that the tables share is not known yet.
	of := partitions(before+after, before, dim, o.MemoryBytes)
	if of > 1 {
		of = partitions(before+after, before, dim, o.MemoryBytes-o.MemoryBytes/laterShare-o.MemoryBytes/seenShare)
		c.seen = make([]sighting, o.MemoryBytes/seenShare/sightingBytes+1)
	}
	c.p = newPartition(of, before+after, before, dim)
	for number := uint64(0); number < of; {
		if err := c.read(ctx, number, before+after); err != nil {
			return nil, err
		}
		number = c.later.end
	}
	c.report.Moved = c.top.rows
	return c.report, nil
}

// read scans the tables, and compares the rows of a partition and those of as many later partitions
// as there is space for on the disk of temporary files.
func (c *comparison) read(ctx context.Context, number uint64, rows int64) error {
	c.p.reset(number)
	clear(c.seen)
	c.later = &later{end: number + 1}
	if !c.diskFailed {
		var err error
		if c.later, err = newLater(c.p, number, rows, c.o.MemoryBytes/laterShare); err != nil {
			c.withoutDisk(err)
		}
	}
	defer func() { c.later.close() }()
	c.progress("reading the first table")
	if err := c.scan(ctx, c.from, func() *spill { return c.later.from }, c.keep); err != nil {
		return err
	}
	c.progress("comparing the second table")
	if err := c.scan(ctx, c.to, func() *spill { return c.later.to }, c.compare); err != nil {
		return err
	}
	if c.o.Keys != nil {
		c.progress("reading keys of fields")
		if err := c.o.Keys(ctx, c.sight); err != nil {
			return err
		}
	}
	c.count()
	for n := number + 1; n < c.later.end; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.p.reset(n)
		c.progress("comparing rows from temporary files")
		if err := c.later.from.visit(n, c.keep); err != nil {
			return err
		}
		if err := c.later.to.visit(n, c.compare); err != nil {
			return err
		}
		if err := c.later.keys.visit(n, func(key uint64, field uint32, _ []float32) { c.claim(int(field), key) }); err != nil {
			return err
		}
		c.count()
	}
	return nil
}

// withoutDisk continues after an error of temporary files: only the rows of the current partition
// are compared, and the tables are read again for each of the others.
func (c *comparison) withoutDisk(err error) {
	c.diskFailed = true
	c.later.drop(c.p.number)
	c.progress(fmt.Sprintf("no temporary files in %s, so the tables are read for each partition: %v", os.TempDir(), err))
}

func (c *comparison) progress(step string) {
	if c.o.Progress != nil {
		c.o.Progress(step, int(c.p.number)+1, int(c.p.of))
	}
}

// scan calls visit for the rows of the current partition of a table, and adds those of later
// partitions to a spill. into returns that spill, which withoutDisk drops.
func (c *comparison) scan(ctx context.Context, t sparsetable.Table, into func() *spill, visit func(key uint64, show uint32, values []float32)) error {
	l := t.Layout()
	values := make([]float32, c.p.dim)
	return t.Scan(ctx, func(key uint64, row []float32) error {
		n := c.p.partitionOf(key)
		if n < c.p.number || n >= c.later.end {
			return nil
		}
		if c.p.dim > 0 {
			l.LoadValues(values, row)
		}
		show := math.Float32bits(l.Stats(row).Show)
		if n == c.p.number {
			visit(key, show, values)
		} else if err := into().add(n, key, show, values); err != nil {
			c.withoutDisk(err)
		}
		return nil
	})
}

// keep adds a row of the first table to the partition.
func (c *comparison) keep(key uint64, show uint32, values []float32) {
	c.p.add(key, inFrom).show = math.Float32frombits(show)
	c.p.values = append(c.p.values, values...)
}

// compare compares a row of the second table.
func (c *comparison) compare(key uint64, show uint32, values []float32) {
	at := c.p.find(key)
	if at < 0 {
		c.p.add(key, inTo)
		return
	}
	e := &c.p.entries[at]
	e.in |= inTo
	if c.p.dim == 0 {
		return
	}
	old := c.p.values[at*c.p.dim:][:c.p.dim]
	r := Row{Key: key, ShowBefore: e.show, ShowAfter: math.Float32frombits(show)}
	r.Distance, e.moved = distance(old, values)
	e.distance = float64(r.Distance)
	if e.moved {
		r.NormBefore, r.NormAfter = norm(old), norm(values)
		c.top.add(&r)
	}
}

// distance returns the Euclidean distance of two vectors, infinite if a number is not finite, and
// whether they differ in any bit.
func distance(a, b []float32) (Float, bool) {
	sum, moved := 0.0, false
	for i := range a {
		moved = moved || math.Float32bits(a[i]) != math.Float32bits(b[i])
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	if moved && math.IsNaN(sum) {
		sum = math.Inf(1)
	}
	return Float(math.Sqrt(sum)), moved
}

func norm(x []float32) Float {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return Float(math.Sqrt(sum))
}

// sight records that a key belongs to a field.
func (c *comparison) sight(field int, key uint64) {
	if len(c.seen) > 0 {
		s := sighting{key: key, field: uint16(field + 1)}
		at, _ := bits.Mul64(hash(key), uint64(len(c.seen)))
		if c.seen[at] == s {
			return
		}
		c.seen[at] = s
	}
	switch n := c.p.partitionOf(key); {
	case n == c.p.number:
		c.claim(field, key)
	case n > c.p.number && n < c.later.end:
		if err := c.later.keys.add(n, key, uint32(field), nil); err != nil {
			c.withoutDisk(err)
		}
	}
}

// claim assigns a key of the partition to a field, unless an earlier field has it.
func (c *comparison) claim(field int, key uint64) {
	at := c.p.find(key)
	if at < 0 {
		return
	}
	e := &c.p.entries[at]
	if n := uint16(field + 1); e.field == 0 || n < e.field {
		e.field = n
	}
}

// count adds the rows of the partition to the report, and sets the fields of those rows that moved
// farthest.
func (c *comparison) count() {
	for i := range c.p.entries {
		e := &c.p.entries[i]
		c.report.Total.add(e)
		if c.report.Fields != nil {
			c.report.Fields[c.groupOf(e)].add(e)
		}
	}
	for i := range c.top.rows {
		r := &c.top.rows[i]
		if at := c.p.find(r.Key); c.report.Fields != nil && at >= 0 {
			r.Field = c.report.Fields[c.groupOf(&c.p.entries[at])].Field
		}
	}
}

// groupOf returns the index of an entry's group in Report.Fields.
func (c *comparison) groupOf(e *entry) int {
	if e.field == 0 {
		return len(c.report.Fields) - 1
	}
	return int(e.field) - 1
}
