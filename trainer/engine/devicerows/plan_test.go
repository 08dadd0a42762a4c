package devicerows

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
)

// TestPlan: rows that two passes share stay at their places, and the others of the second one get
// places that are free when the first part of the plan is long done, so that each device has as
// many rows.
func TestPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 1))
	for range 200 {
		devices := 1 + rng.IntN(3)
		p := &plan{worker: newWorker("planning a pass")}
		var parts []*part
		for d := range devices {
			parts = append(parts, &part{number: d})
		}
		p.init(parts)
		var before, from *pass
		for range 6 {
			to := &pass{Pass: engine.Pass{Keys: someKeys(rng)}}
			p.begin(from, to)
			if _, err := p.matching.isDone(true); err != nil {
				t.Fatal(err)
			}
			if before != nil { // its last rows have left only now
				for d, part := range parts {
					part.places.give(before.leaving[d].places)
				}
			}
			if done, err := p.isDone(true); !done || err != nil {
				t.Fatal(done, err)
			}
			checkPlan(t, from, to, devices)
			before, from = from, to
		}
		p.worker.close()
	}
}

// someKeys are some of few keys, in random order.
func someKeys(rng *rand.Rand) (keys []uint64) {
	for _, k := range rng.Perm(300)[:1+rng.IntN(299)] {
		keys = append(keys, uint64(k))
	}
	return keys
}

func checkPlan(t *testing.T, from, to *pass, devices int) {
	t.Helper()
	stays := func(key uint64) (at int32, does bool) {
		if from == nil {
			return 0, false
		}
		i := slices.Index(from.Keys, key)
		if i < 0 {
			return 0, false
		}
		return from.at[i], true
	}
	arriving, seen := make([]rowList, devices), map[int32]bool{}
	rows, stayed := make([]int, devices), 0
	for i, key := range to.Keys {
		at := to.at[i]
		if seen[at] {
			t.Fatal("two rows have the same place")
		}
		seen[at] = true
		d, place := onDevice(at, devices)
		rows[d]++
		if before, does := stays(key); !does {
			arriving[d].add(int32(i), place)
		} else if stayed++; at != before {
			t.Fatal("a row that stays has another place")
		}
	}
	for d, l := range arriving {
		if got := to.arriving[d]; !slices.Equal(got.rows, l.rows) || !slices.Equal(got.places, l.places) || to.kept[d]+len(l.rows) != rows[d] {
			t.Fatalf("%v arrive at device %d and %d stay, want %v of %d rows", got, d, to.kept[d], l, rows[d])
		}
		if share := (len(to.Keys) - d + devices - 1) / devices; rows[d] > max(share, to.kept[d]) {
			t.Fatalf("device %d of %d has %d of %d rows", d, devices, rows[d], len(to.Keys))
		}
	}
	if from == nil {
		return
	}
	left := 0
	for d, l := range from.leaving {
		for i, row := range l.rows {
			if slices.Contains(to.Keys, from.Keys[row]) || from.at[row] != l.places[i]*int32(devices)+int32(d) {
				t.Fatal("a row leaves that stays, or another place than its own is given back")
			}
		}
		left += len(l.rows)
	}
	if left+stayed != len(from.Keys) {
		t.Fatalf("%d rows leave, and %d of %d stay", left, stayed, len(from.Keys))
	}
}
