package gpu

// Order returns the dependencies between the operations of a graph. Each operation is given by the
// regions that it uses, as kernel arguments; numeric arguments do not matter. An operation depends
// on every earlier one that uses one of its bytes if at least one of the two writes it. For each
// operation the result lists the earlier ones that it must wait for, latest first, without
// transitive dependencies.
func Order(operations [][]Arg) [][]int {
	words := (len(operations) + 63) / 64
	before := make([]uint64, words*len(operations)) // for each operation a bit for each that comes before it
	after := make([][]int, len(operations))
	for i, args := range operations {
		known := before[i*words:][:words]
		for j := i - 1; j >= 0; j-- {
			if known[j/64]>>(j%64)&1 != 0 || !conflict(args, operations[j]) {
				continue
			}
			after[i] = append(after[i], j)
			known[j/64] |= 1 << (j % 64)
			for w, bits := range before[j*words:][:words] {
				known[w] |= bits
			}
		}
	}
	return after
}

// conflict reports whether two operations use a common byte that one of them writes.
func conflict(a, b []Arg) bool {
	for i := range a {
		for k := range b {
			if x, y := &a[i], &b[k]; (x.Writes() || y.Writes()) && x.IsRegion() && y.IsRegion() && x.Region.Overlaps(y.Region) {
				return true
			}
		}
	}
	return false
}

// Args are what a product uses as arguments of a kernel: its matrices, which Regions has returned,
// and the bias of its Epilogue.
func (p *Product) Args(a, b, c Region) []Arg {
	args := []Arg{Read(a), Read(b), Write(c)}
	if bias := p.Epilogue.Bias; bias.Memory != nil {
		args = append(args, Read(bias))
	}
	return args
}
