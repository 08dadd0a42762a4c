package generate

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"aibox/internal/fixmath"
	"aibox/internal/panics"
	"aibox/internal/score"
)

// day is the model of one day.
type day struct {
	number  int
	drift   drift
	slopes  []float64 // (D)
	centers []float64 // (F, LatentDim) mean latent vector of each field's values
	bias    float64
}

// The calibration sample has 65536 examples. They determine the mean of p to better than
// 1 % of its value in most logs, and take a fraction of a second with 39 columns. Wide
// models have fewer examples, so that their calibration does not take longer.
const (
	sampleMost  = 1 << 16
	sampleLeast = 1 << 12
	sampleWork  = 1 << 28 // features times numbers per feature
	chunkMost   = 64
	chunkFloats = 1 << 24 // of all chunks' sums together
)

func (g *Generator) sampleSize() int {
	work := len(g.columns) * 4
	for i := range g.cfg.Fields {
		work += int(math.Ceil(g.cfg.Fields[i].meanValues())) * (g.latentDim + 8)
	}
	return min(max(sampleWork/max(work, 1), sampleLeast), sampleMost)
}

// sample calls each for every example of the calibration sample of a day, in
// the given number of chunks, several at a time; chunk c has the examples of
// index [c·size/chunks, (c+1)·size/chunks).
func (g *Generator) sample(d *day, chunks int, each func(chunk, index int, e *example)) {
	size := g.sampleSize()
	queue := make(chan int, chunks)
	for c := range chunks {
		queue <- c
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(chunks, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			defer panics.Exit("calibrating the generator")
			e := g.newExample()
			for c := range queue {
				for i := c * size / chunks; i < (c+1)*size/chunks; i++ {
					r := stream(hash(g.cfg.Seed, forSample, uint64(d.number), uint64(i)))
					g.drawFeatures(&r, e)
					each(c, i, e)
				}
			}
		})
	}
	wg.Wait()
}

// newDay calibrates the model for a day.
func (g *Generator) newDay(number int) *day {
	d := &day{number: number, drift: newDrift(g.cfg.DriftPerDay, number), slopes: make([]float64, len(g.columns))}
	for j := range g.columns {
		v := g.columns[j].key
		d.slopes[j] = effectOf(v, d.drift.turn(part(v, 2), part(v, 3)))
	}
	g.center(d)
	return d
}

// center measures the mean latent vector of each field's values. Each chunk has its own
// sums, which are added up in the order of the chunks, so that the result does not depend
// on the threads.
func (g *Generator) center(d *day) {
	if g.latentDim == 0 {
		return
	}
	width := len(g.fields) * g.latentDim
	chunks := min(max(chunkFloats/width, 1), chunkMost)
	type sums struct {
		total  []float64
		values []float64
	}
	parts := make([]sums, chunks)
	for c := range parts {
		parts[c] = sums{make([]float64, width), make([]float64, len(g.fields))}
	}
	g.sample(d, chunks, func(c, _ int, e *example) {
		start := 0
		for i := range g.fields {
			g.latentBag(d, e, i, start)
			total := parts[c].total[i*g.latentDim:]
			for k, x := range e.bag {
				total[k] += x
			}
			parts[c].values[i] += float64(e.ends[i] - start)
			start = e.ends[i]
		}
	})
	for c := 1; c < chunks; c++ {
		for j, x := range parts[c].total {
			parts[0].total[j] += x
		}
		for i, n := range parts[c].values {
			parts[0].values[i] += n
		}
	}
	d.centers = parts[0].total
	for j := range d.centers {
		if n := parts[0].values[j/g.latentDim]; n > 0 {
			d.centers[j] /= n
		}
	}
}

// parts measures the two parts of the logit on the sample.
func (g *Generator) parts(d *day) (linear, pairwise []float64) {
	size := g.sampleSize()
	linear, pairwise = make([]float64, size), make([]float64, size)
	g.sample(d, chunkMost, func(_, i int, e *example) {
		linear[i], pairwise[i] = g.linearPart(d, e), g.pairwisePart(d, e)
	})
	return linear, pairwise
}

// setScales chooses the factors of the two parts on day 0. They are the same for every day:
// drift changes the effects of features, but not how well these predict the label.
func (g *Generator) setScales(linear, pairwise []float64) error {
	for _, p := range []struct {
		name     string
		values   []float64
		strength float64
		scale    *float64
	}{{"linear", linear, g.cfg.LinearStrength, &g.linearScale}, {"interaction", pairwise, g.cfg.InteractionStrength, &g.pairwiseScale}} {
		if p.strength == 0 {
			continue
		}
		sd := standardDeviation(p.values)
		if !(sd > 1e-6) {
			return fmt.Errorf("generate: %s_strength is %v, but the features hardly vary (their standard deviation is %.2g in a sample of %d examples); lower the skew or raise cardinalities", p.name, p.strength, sd, len(p.values))
		}
		*p.scale = p.strength / sd
	}
	return nil
}

func standardDeviation(values []float64) float64 {
	var sum, squares score.Sum
	for _, x := range values {
		sum.Add(x)
	}
	mean := sum.Value() / float64(len(values))
	for _, x := range values {
		squares.Add(float64((x - mean) * (x - mean)))
	}
	return math.Sqrt(squares.Value() / float64(len(values)))
}

// setBias chooses the bias of a day, so that the mean of p is the base rate, by
// bisection. linear is overwritten.
func (g *Generator) setBias(d *day, linear, pairwise []float64) {
	for i := range linear {
		linear[i] = float64(g.linearScale*linear[i]) + float64(g.pairwiseScale*pairwise[i])
	}
	logit := fixmath.Log(g.cfg.BaseRate) - fixmath.Log1p(-g.cfg.BaseRate)
	// With the lower bias every p is at most the base rate, and with the higher bias every
	// p is at least the base rate.
	low, high := logit-slices.Max(linear), logit-slices.Min(linear)
	for high-low > 1e-9 {
		d.bias = (low + high) / 2
		var sum score.Sum
		for _, x := range linear {
			sum.Add(fixmath.Sigmoid(x + d.bias))
		}
		if sum.Value() < g.cfg.BaseRate*float64(len(linear)) {
			low = d.bias
		} else {
			high = d.bias
		}
	}
	d.bias = (low + high) / 2
}
