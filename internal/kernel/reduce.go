package kernel

// lanes is the width of every reduction: one AVX-512 register, two of AVX2.
const lanes = 16

// Sum returns the sum of x. Lane i of 16 adds elements i, i+16, i+32, … in this
// order, starting from +0; the lanes are added as a tree: lanes i and i+8 for
// i < 8, then i and i+4, i and i+2, and last 0 and 1.
func Sum(x []float32) float32 {
	var l [lanes]float32
	full := len(x) &^ (lanes - 1)
	sumLanes(&l, x[:full])
	for i, v := range x[full:] {
		l[i] += v
	}
	return tree(&l)
}

// Dot returns the scalar product of a and b, which have one length: each lane
// is a chain of fused multiply-adds, lanes and tree as in Sum.
func Dot(a, b []float32) float32 {
	sameLength("Dot", len(a), len(b))
	var l [lanes]float32
	full := len(a) &^ (lanes - 1)
	dotLanes(&l, a[:full], b[:full])
	for i, v := range a[full:] {
		l[i] = FMA(v, b[full+i], l[i])
	}
	return tree(&l)
}

// tree adds the lanes of a reduction.
func tree(l *[lanes]float32) float32 {
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			l[i] += l[i+w]
		}
	}
	return l[0]
}
