package generate

import (
	"math"
	"testing"

	"aibox/internal/splitmix"
)

// drawRanks counts ranks 1..top; the last counter is for the rest.
func drawRanks(z zipf, seed uint64, draws, top int) []float64 {
	counts := make([]float64, top+1)
	r := stream(seed)
	for range draws {
		k := z.draw(&r)
		if k < 1 || float64(k) > z.n {
			panic("rank out of range")
		}
		counts[min(k, int64(top)+1)-1]++
	}
	return counts
}

// zipfSum is the sum of k^-s for k from a to b: term by term up to a million,
// then by the Euler-Maclaurin formula.
func zipfSum(s, a, b float64) float64 {
	const direct = 1e6
	sum := 0.0
	k := a
	for ; k <= b && k <= direct; k++ {
		sum += math.Pow(k, -s)
	}
	if k > b {
		return sum
	}
	integral := math.Log(b / k)
	if s != 1 {
		integral = (math.Pow(b, 1-s) - math.Pow(k, 1-s)) / (1 - s)
	}
	return sum + integral + (math.Pow(k, -s)+math.Pow(b, -s))/2
}

func TestZipfFollowsThePowerLaw(t *testing.T) {
	const seed, draws = 41, 200_000
	t.Logf("seed %d", seed)
	for _, s := range []float64{0, 0.3, 0.99, 1, 1 + 1e-10, 1.05, 1.5, 3, 10} {
		for _, n := range []int64{1, 2, 3, 100, 1_000_000_000, 1_000_000_000_000} {
			top := int(min(n, 20))
			counts := drawRanks(newZipf(s, n), seed, draws, top)
			all := zipfSum(s, 1, float64(n))
			// Chi-square over the top ranks and the rest, cells expecting less
			// than 5 joined to the rest.
			chi, cells, restWant, restGot := 0.0, 0, float64(draws), float64(draws)
			for k := range top {
				want := draws * math.Pow(float64(k+1), -s) / all
				if want < 5 {
					break
				}
				chi += (counts[k] - want) * (counts[k] - want) / want
				restWant -= want
				restGot -= counts[k]
				cells++
			}
			if restWant > 5 {
				chi += (restGot - restWant) * (restGot - restWant) / restWant
			} else if cells > 0 {
				cells--
			}
			// 4.5 standard deviations of a chi-square variable, normal for many
			// cells, and Wilson-Hilferty's cube for few.
			df := math.Max(float64(cells), 1)
			limit := df * math.Pow(1-2/(9*df)+4.5*math.Sqrt(2/(9*df)), 3)
			if chi > limit {
				t.Errorf("s %v, n %d: chi-square %.1f over %.0f cells, limit %.1f: %v", s, n, chi, df, limit, counts)
			}
		}
	}
}

// TestZipfTail looks far out: the share of draws in each decade of ranks.
func TestZipfTail(t *testing.T) {
	const seed, draws, n = 43, 300_000, 1_000_000_000
	t.Logf("seed %d", seed)
	for _, s := range []float64{0.5, 1, 1.2} {
		z := newZipf(s, n)
		var decades [10]float64
		r := stream(seed)
		for range draws {
			decades[min(int(math.Log10(float64(z.draw(&r)))), 8)]++
		}
		all := zipfSum(s, 1, n)
		for d := range 9 {
			from, to := math.Pow10(d), math.Pow10(d+1)-1
			if d == 8 {
				to = n
			}
			want := draws * zipfSum(s, from, to) / all
			if want > 5 && math.Abs(decades[d]-want) > 4.5*math.Sqrt(want) {
				t.Errorf("s %v: %v draws with ranks of 10^%d, want %.0f", s, decades[d], d, want)
			}
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 5, 16, 17, 1000, 4096} {
		for key := range uint64(5) {
			p := newPermutation(n, key)
			seen := make([]bool, n)
			for x := range uint64(n) {
				y := p.at(x)
				if y >= uint64(n) || seen[y] {
					t.Fatalf("n %d, key %d: %d goes to %d, beyond the end or a second time", n, key, x, y)
				}
				seen[y] = true
			}
		}
	}
	// Ids do not give ranks away: over a billion values, the ids of the first
	// thousand ranks are spread evenly.
	const n = 1_000_000_000
	p := newPermutation(n, 7)
	var tenths [10]int
	rising := 0
	last := uint64(0)
	for x := range uint64(1000) {
		y := p.at(x)
		if y >= n {
			t.Fatalf("id %d", y)
		}
		tenths[y/(n/10)]++
		if y > last {
			rising++
		}
		last = y
	}
	for _, c := range tenths {
		if c < 60 || c > 140 {
			t.Errorf("ids per tenth of the range: %v", tenths)
			break
		}
	}
	if rising < 440 || rising > 560 {
		t.Errorf("%d of 1000 ids are above the one before", rising)
	}
}

func TestNormals(t *testing.T) {
	for name, draw := range map[string]func(uint64) float64{"normal": normal, "roughNormal": roughNormal} {
		const n = 200_000
		var sum, squares, within float64
		for i := range uint64(n) {
			x := draw(splitmix.Mix(i * splitmix.Step))
			sum += x
			squares += x * x
			if x > -1 && x < 1 {
				within++
			}
		}
		if mean := sum / n; math.Abs(mean) > 0.01 {
			t.Errorf("%s: mean %v", name, mean)
		}
		if v := squares / n; math.Abs(v-1) > 0.015 {
			t.Errorf("%s: variance %v", name, v)
		}
		if math.Abs(within/n-0.6827) > 0.02 {
			t.Errorf("%s: %v within one standard deviation", name, within/n)
		}
	}
}

// TestDriftShare: a day's effects explain all but the stated share of the
// variance of the next day's, whichever the day, and the variance stays.
func TestDriftShare(t *testing.T) {
	const values = 40_000
	for _, share := range []float64{0, 0.01, 0.3, 1} {
		effects := func(number int) []float64 {
			d := newDrift(share, number)
			list := make([]float64, values)
			for i := range list {
				v := splitmix.Mix(uint64(i) * splitmix.Step)
				list[i] = effectOf(v, d.turn(part(v, 2), part(v, 3)))
			}
			return list
		}
		for _, days := range [][2]int{{0, 1}, {1, 2}, {100, 101}, {0, 7}, {500, 560}} {
			x, y := effects(days[0]), effects(days[1])
			var xx, yy, xy float64
			for i := range x {
				xx += x[i] * x[i]
				yy += y[i] * y[i]
				xy += x[i] * y[i]
			}
			got := xy / math.Sqrt(xx*yy)
			want := math.Pow(1-share, float64(days[1]-days[0])/2)
			if math.Abs(got-want) > 0.02 {
				t.Errorf("share %v, days %v: correlation %.3f, want %.3f", share, days, got, want)
			}
			if days[1]-days[0] == 1 && share == 0.3 && math.Abs(1-got*got-share) > 0.03 {
				t.Errorf("share %v, days %v: %.3f of the variance changed", share, days, 1-got*got)
			}
			if math.Abs(yy/values-1) > 0.03 {
				t.Errorf("share %v, day %d: variance %v", share, days[1], yy/values)
			}
		}
	}
}

func BenchmarkZipf(b *testing.B) {
	z := newZipf(1.05, 1_000_000_000)
	r := stream(1)
	s := int64(0)
	for range b.N {
		s += z.draw(&r)
	}
	_ = s
}
