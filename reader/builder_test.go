package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
)

// plainPasses makes the passes of an input in the obvious way: one example after the
// other, with maps.
func plainPasses(t *testing.T, o Options) (passes []*Pass) {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile(&o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := openRows(t.Context(), &o, p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.close() }()
	all := newBlock()
	for {
		b, e, err := r.next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all.CopyRow(p, &b.List, e)
	}
	order := make([]int, all.N)
	for i := range order {
		order[i] = i
	}
	if size := o.ShuffleBuffer; size > 1 {
		for w := 0; w*size < len(order); w++ {
			part := order[w*size : min((w+1)*size, len(order))]
			for i := len(part) - 1; i > 0; i-- {
				j := hashes.Random(o.Seed, hashes.Shuffle, hashes.Mix(uint64(o.Epoch))^uint64(w), uint64(i)) % uint64(i+1)
				part[i], part[j] = part[j], part[i]
			}
		}
	}
	var pass *Pass
	numbers := map[uint64]int32{}
	for batch := range slices.Chunk(order, o.BatchSize) {
		if pass == nil || len(pass.Batches) == o.BatchesPerPass {
			pass = &Pass{Seq: int64(len(passes))}
			passes = append(passes, pass)
			clear(numbers)
		}
		pass.Batches = append(pass.Batches, plainBatch(p, all, batch, pass, numbers))
	}
	return passes
}

func plainBatch(p *examples.Plan, all *block, examples []int, pass *Pass, numbers map[uint64]int32) Batch {
	b := Batch{N: len(examples), Labels: []float32{}, Dense: []float32{}, Offsets: []int32{0}, Index: []int32{}, Rows: []int32{}}
	var weights, bagWeights []float32
	if p.Passed() > 0 {
		b.Columns = make([][]string, p.Passed())
	}
	rows := map[int32]int32{}
	var users [][]int32 // of each row, its bags
	var userWeights [][]float32
	for _, e := range examples {
		b.Labels = append(b.Labels, all.Labels[e])
		b.Dense = append(b.Dense, all.Dense[e*p.DenseWidth():(e+1)*p.DenseWidth()]...)
		if len(all.Weights) > 0 {
			weights = append(weights, all.Weights[e])
		}
		if p.Grouped() {
			b.Groups = append(b.Groups, all.Groups[e])
		}
		if p.KeepBad {
			b.Bad = append(b.Bad, all.Blanks[e])
		}
		for f := range p.Fields() {
			bag := int32(len(b.Offsets) - 1)
			for k := all.Offsets[e*p.Fields()+f]; k < all.Offsets[e*p.Fields()+f+1]; k++ {
				key := all.Keys[k]
				number, known := numbers[key]
				if !known {
					number = int32(len(pass.Keys))
					numbers[key] = number
					pass.Keys = append(pass.Keys, key)
				}
				row, known := rows[number]
				if !known {
					row = int32(len(b.Rows))
					rows[number] = row
					b.Rows = append(b.Rows, number)
					users, userWeights = append(users, nil), append(userWeights, nil)
				}
				b.Index = append(b.Index, row)
				users[row] = append(users[row], bag)
				weight := float32(1)
				if len(all.BagWeights) > 0 {
					weight = all.BagWeights[k]
					bagWeights = append(bagWeights, weight)
				}
				userWeights[row] = append(userWeights[row], weight)
			}
			b.Offsets = append(b.Offsets, int32(len(b.Index)))
		}
		for i := range p.Passed() {
			at := e*p.Passed() + i
			b.Columns[i] = append(b.Columns[i], string(all.Text[all.TextEnds[at]:all.TextEnds[at+1]]))
		}
	}
	isOne := func(w float32) bool { return w == 1 }
	if slices.ContainsFunc(weights, func(w float32) bool { return !isOne(w) }) {
		b.Weights = weights
	}
	b.RowStarts, b.RowBags = []int32{0}, slices.Concat(users...)
	for _, bags := range users {
		b.RowStarts = append(b.RowStarts, b.RowStarts[len(b.RowStarts)-1]+int32(len(bags)))
	}
	if slices.ContainsFunc(bagWeights, func(w float32) bool { return !isOne(w) }) {
		b.BagWeights, b.RowWeights = bagWeights, slices.Concat(userWeights...)
	}
	b.SetMade()
	return b
}

// dumpExported is dump without the memory of slices that are nil.
func dumpExported(p *Pass) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pass %d keys %x\n", p.Seq, p.Keys)
	for i := range p.Batches {
		c := p.Batches[i]
		c.weights, c.bagWeights, c.rowWeights = nil, nil, nil
		fmt.Fprintf(&b, "%+v %v %v %v\n", c, c.Weights == nil, c.BagWeights == nil, c.RowWeights == nil)
	}
	return b.String()
}

// weightedRows makes a CSV file of weights, bags with and without weights, missing values
// and bad rows.
func weightedRows(rows int) []byte {
	var b strings.Builder
	b.WriteString("y,w,x,a,b,c,g\n")
	for i := range rows {
		draw := func(n uint64, stream uint64) uint64 { return hashes.Random(3, 4, stream, uint64(i)) % n }
		weight, bagWeight := "", ""
		if i > rows/3 { // before that, all weights are 1
			weight = fmt.Sprint(draw(3, 1))
			bagWeight = fmt.Sprintf(":0.%d", 1+draw(3, 2))
		}
		label := fmt.Sprint(draw(2, 3))
		if draw(40, 4) == 0 {
			label = "bad"
		}
		number := fmt.Sprint(draw(9, 5))
		if number == "4" {
			number = ""
		}
		fmt.Fprintf(&b, "%s,%s,%s,a%d,b%d%s|b%d|b%d,%s,%d\n", label, weight, number, draw(300, 6),
			draw(20, 7), bagWeight, draw(5, 8), draw(400, 9), []string{"", "c"}[draw(2, 10)], draw(7, 11))
	}
	return []byte(b.String())
}

func weightedSchema() Schema {
	return Schema{Format: FormatCSV, Header: true, Columns: []Column{
		{Name: "y", Role: RoleLabel}, {Name: "w", Role: RoleWeight}, {Name: "x", Role: RoleDense, Indicator: true}, {Name: "a", Role: RoleSparse},
		{Name: "b", Role: RoleSparse, Separator: "|", WeightSeparator: ":"}, {Name: "c", Role: RoleSparse, Space: "a"}, {Name: "g", Role: RoleIgnore},
	}}
}

// TestPassesAreThoseOfThePlainWay compares passes that workers make with those of a plain
// implementation, for readings of all kinds; the passes are given back, so that their
// memory is used again.
func TestPassesAreThoseOfThePlainWay(t *testing.T) {
	dir := t.TempDir()
	criteo := testOptions(rowschema.CriteoSchema(), write(t, dir, "day", criteoLines(700)))
	mixed := testOptions(weightedSchema(), write(t, dir, "mixed.csv", weightedRows(900)), write(t, dir, "more.csv", weightedRows(31)))
	for name, base := range map[string]Options{"criteo": criteo, "mixed": mixed} {
		for i, change := range []func(o *Options){
			func(*Options) {},
			func(o *Options) { o.BatchSize, o.BatchesPerPass, o.ChunkBytes = 64, 3, 1000 },
			func(o *Options) { o.BatchSize, o.BatchesPerPass, o.Threads, o.ChunkBytes = 7, 5, 5, 300 },
			func(o *Options) { o.BatchSize, o.BatchesPerPass, o.Threads = 100, 1, 1 },
			func(o *Options) { o.BatchSize, o.BatchesPerPass = 5000, 4 },
			func(o *Options) { o.ShuffleBuffer, o.Seed, o.BatchSize, o.ChunkBytes = 50, 9, 33, 2000 },
			func(o *Options) { o.ShuffleBuffer, o.Seed, o.BatchSize, o.Epoch, o.Threads = 300, 9, 16, 2, 1 },
			func(o *Options) { o.ShuffleBuffer, o.BatchSize, o.BatchesPerPass = 3, 100, 2 },
			func(o *Options) { o.NegativeSampling, o.Seed, o.BatchSize, o.ChunkBytes = 0.3, 5, 20, 1000 },
			func(o *Options) { o.NegativeSampling, o.ShuffleBuffer, o.Limit, o.BatchSize = 0.6, 40, 333, 20 },
			func(o *Options) { o.Limit, o.BatchSize = 128, 32 },
			func(o *Options) { o.KeepBadRows, o.BatchSize, o.Threads = true, 11, 3 },
			func(o *Options) { o.KeepBadRows, o.ShuffleBuffer, o.BatchSize = true, 25, 11 },
			func(o *Options) {
				c := o.Schema.WithDefaults().Columns
				o.GroupBy, o.PassThrough = c[len(c)-1].Name, []string{c[1].Name, c[0].Name}
			},
		} {
			o := base
			change(&o)
			want := plainPasses(t, o)
			r, err := Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			examples := int64(0)
			for n := 0; ; n++ {
				p, err := r.Next(t.Context())
				if errors.Is(err, io.EOF) && n == len(want) {
					break
				}
				if err != nil || n == len(want) {
					t.Fatalf("%s %d: pass %d of %d: %v", name, i, n, len(want), err)
				}
				if got, want := dumpExported(p), dumpExported(want[n]); got != want {
					t.Fatalf("%s %d: pass %d is\n%s\nwant\n%s", name, i, n, got, want)
				}
				for b := range p.Batches {
					examples += int64(p.Batches[b].N)
				}
				if c := r.Counts(); o.ShuffleBuffer == 0 && c.Examples != examples || c.Examples < examples || p.Bytes != c.BytesRead {
					t.Fatalf("%s %d: %+v after pass %d with %d examples and byte %d", name, i, c, n, examples, p.Bytes)
				}
				scramble(p)
				p.Recycle()
			}
			mustClose(t, r)
		}
	}
}

// scramble destroys a pass that is given back: nobody may depend on its contents.
func scramble(p *Pass) {
	for i := range p.Keys {
		p.Keys[i] = math.MaxUint64
	}
	for i := range p.Batches {
		b := &p.Batches[i]
		for _, list := range [][]int32{b.Offsets, b.Index, b.Rows, b.RowStarts, b.RowBags} {
			for j := range list {
				list[j] = math.MinInt32
			}
		}
		for _, list := range [][]float32{b.Labels, b.Weights, b.Dense, b.BagWeights, b.RowWeights} {
			for j := range list {
				list[j] = float32(math.NaN())
			}
		}
	}
}

// TestPassesCauseNoGarbage checks that a reading whose passes are given back allocates only a small
// part of the memory of its passes. How many passes exist at the same time depends on the
// scheduler, so some may be allocated late. Without any reuse, more than the memory of all passes
// would be allocated.
func TestPassesCauseNoGarbage(t *testing.T) {
	o := testOptions(rowschema.CriteoSchema(), write(t, t.TempDir(), "day", criteoLines(60_000)))
	o.BatchSize, o.BatchesPerPass, o.ChunkBytes = 256, 8, 512<<10
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	var before, after runtime.MemStats
	taken := int64(0)
	for n := 0; ; n++ {
		p, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 10 {
			runtime.ReadMemStats(&before)
		}
		if n > 10 {
			taken += p.MemoryBytes()
		}
		p.Recycle()
	}
	runtime.ReadMemStats(&after)
	if garbage := int64(after.TotalAlloc - before.TotalAlloc); garbage > taken/2 {
		t.Errorf("%d bytes were allocated for passes of %d bytes", garbage, taken)
	}
}

// TestDraftsAreNotLost checks that a reading that is interrupted repeatedly, at every place, yields
// the same passes.
func TestDraftsAreNotLost(t *testing.T) {
	o := testOptions(rowschema.CriteoSchema(), write(t, t.TempDir(), "day", criteoLines(400)))
	o.BatchSize, o.BatchesPerPass, o.ShuffleBuffer, o.ChunkBytes = 9, 4, 60, 700
	want := plainPasses(t, o)
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	for n := 0; n < len(want); {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel() // sooner or later
		p, err := r.Next(ctx)
		cancel()
		if errors.Is(err, context.Canceled) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dumpExported(p), dumpExported(want[n]); got != want {
			t.Fatalf("pass %d is\n%s\nwant\n%s", n, got, want)
		}
		p.Recycle()
		n++
	}
}
