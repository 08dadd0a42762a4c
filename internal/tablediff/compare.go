package tablediff

import (
	"context"
	"fmt"
	"math"

	"aibox/sparsetable"
)

// Options says what Compare reports and how much memory it takes.
type Options struct {
	MemoryBytes int64 // for the rows that are compared at one time
	Top         int   // length of Report.Moved
	// Fields are the names of the fields whose keys Keys visits. Keys calls visit for each of these
	// keys, any number of times, with the number of the field. Keys is called once for each
	// partition. A key that several fields share belongs to the first of them.
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
}

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
	c.p = newPartition(of, before+after, before, dim)
	for number := range of {
		if err := c.partition(ctx, number); err != nil {
			return nil, err
		}
	}
	c.report.Moved = c.top.rows
	return c.report, nil
}

// partition compares the rows of one partition.
func (c *comparison) partition(ctx context.Context, number uint64) error {
	c.p.reset(number)
	c.progress("reading the first table")
	if err := c.from.Scan(ctx, c.keep); err != nil {
		return err
	}
	c.progress("comparing the second table")
	compare := c.compare()
	if err := c.to.Scan(ctx, compare); err != nil {
		return err
	}
	if c.o.Keys != nil {
		c.progress("reading keys of fields")
		if err := c.o.Keys(ctx, c.claim); err != nil {
			return err
		}
	}
	c.count()
	return nil
}

func (c *comparison) progress(step string) {
	if c.o.Progress != nil {
		c.o.Progress(step, int(c.p.number)+1, int(c.p.of))
	}
}

// keep adds a row of the first table to the partition.
func (c *comparison) keep(key uint64, row []float32) error {
	if !c.p.has(key) {
		return nil
	}
	l := c.from.Layout()
	e := c.p.add(key, inFrom)
	e.show = l.Stats(row).Show
	if c.p.dim > 0 {
		n := len(c.p.values)
		c.p.values = extend(c.p.values, c.p.dim)
		l.LoadValues(c.p.values[n:], row)
	}
	return nil
}

// extend makes x longer by n numbers, which are 0.
func extend(x []float32, n int) []float32 {
	if len(x)+n <= cap(x) {
		x = x[:len(x)+n]
		clear(x[len(x)-n:])
		return x
	}
	return append(x, make([]float32, n)...)
}

// compare returns a function that compares a row of the second table.
func (c *comparison) compare() func(key uint64, row []float32) error {
	l := c.to.Layout()
	values := make([]float32, l.ValueDim)
	return func(key uint64, row []float32) error {
		if !c.p.has(key) {
			return nil
		}
		at := c.p.find(key)
		if at < 0 {
			c.p.add(key, inTo)
			return nil
		}
		e := &c.p.entries[at]
		e.in |= inTo
		if c.p.dim == 0 {
			return nil
		}
		l.LoadValues(values, row)
		old := c.p.values[at*c.p.dim:][:c.p.dim]
		r := Row{Key: key, ShowBefore: e.show, ShowAfter: l.Stats(row).Show}
		r.Distance, e.moved = distance(old, values)
		e.distance = float64(r.Distance)
		if e.moved {
			r.NormBefore, r.NormAfter = norm(old), norm(values)
			c.top.add(&r)
		}
		return nil
	}
}

// distance is the Euclidean distance of two vectors, infinite if a number is not finite,
// and whether they differ in any bit.
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

// claim says that key belongs to the field, unless an earlier field has it.
func (c *comparison) claim(field int, key uint64) {
	if !c.p.has(key) {
		return
	}
	at := c.p.find(key)
	if at < 0 {
		return
	}
	e := &c.p.entries[at]
	if n := uint16(field + 1); e.field == 0 || n < e.field {
		e.field = n
	}
}

// count adds the rows of the partition to the report, and says which fields the rows that
// moved farthest belong to.
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
		if at := c.p.find(r.Key); c.report.Fields != nil && c.p.has(r.Key) && at >= 0 {
			r.Field = c.report.Fields[c.groupOf(&c.p.entries[at])].Field
		}
	}
}

// groupOf is the number of an entry's group in Report.Fields.
func (c *comparison) groupOf(e *entry) int {
	if e.field == 0 {
		return len(c.report.Fields) - 1
	}
	return int(e.field) - 1
}
