package reader

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
)

// TestInvert compares the inverted index with one that is made in the obvious way.
func TestInvert(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 1))
	var b Batch
	for round := range 40 {
		rows, bags, weighted := 1+random.IntN(40), random.IntN(300), round%2 == 0
		b.Offsets, b.Index, b.BagWeights = []int32{0}, nil, nil
		for range bags {
			for range random.IntN(5) {
				b.Index = append(b.Index, int32(random.IntN(rows)))
				if weighted {
					b.BagWeights = append(b.BagWeights, float32(random.IntN(3))-0.5)
				}
			}
			b.Offsets = append(b.Offsets, int32(len(b.Index)))
		}
		var starts, rowBags []int32
		var weights []float32
		for row := range int32(rows) {
			starts = append(starts, int32(len(rowBags)))
			for bag := range bags {
				for at := b.Offsets[bag]; at < b.Offsets[bag+1]; at++ {
					if b.Index[at] != row {
						continue
					}
					rowBags = append(rowBags, int32(bag))
					if b.BagWeights != nil {
						weights = append(weights, b.BagWeights[at])
					}
				}
			}
		}
		starts = append(starts, int32(len(rowBags)))
		b.Invert(rows)
		if !slices.Equal(b.RowStarts, starts) || !slices.Equal(b.RowBags, rowBags) || !slices.Equal(b.RowWeights, weights) || (b.RowWeights == nil) != (b.BagWeights == nil) {
			t.Fatalf("weighted %v: %v %v %v, want %v %v %v", weighted, b.RowStarts, b.RowBags, b.RowWeights, starts, rowBags, weights)
		}
	}
}
