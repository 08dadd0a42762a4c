package ssd_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/tabletest"
)

// loseSSD loses a directory with all its contents, or some files with rows.
func loseSSD(unit int) func(rng *rand.Rand, disk tabletest.Disk, o *sparsetable.Options) string {
	return func(rng *rand.Rand, disk tabletest.Disk, o *sparsetable.Options) string {
		d := disk.(*ssdDisk)
		at := rng.IntN(len(o.SSD.Dirs))
		if rng.IntN(2) == 0 {
			dir := fmt.Sprintf("/ssd%d", at)
			root, err := d.fs.OpenDir("/")
			if err = errors.Join(err, d.fs.RemoveAll(dir), d.fs.MkdirAll(dir, 0o755), root.Sync(), root.Close()); err != nil {
				panic(err)
			}
			d.devices[at] = blocktest.New(blocktest.Options{Dir: dir, Seed: rng.Uint64(), UnitBytes: unit})
			return dir
		}
		var gone []string
		for i, dev := range d.devices {
			names, err := dev.List()
			if err != nil {
				panic(err)
			}
			for _, name := range names {
				share := 20
				if strings.HasSuffix(name, ".delta") {
					share = 6
				}
				if sparsetable.HasRows(name) && rng.IntN(share) == 0 {
					if err := dev.Remove(name); err != nil {
						panic(err)
					}
					gone = append(gone, fmt.Sprintf("%d/%s", i, name))
				}
			}
		}
		return strings.Join(gone, ", ")
	}
}

// TestSSDRandomLoss runs the random sequences of TestSSDRandom, and loses files of snapshots and
// whole directories in between.
func TestSSDRandomLoss(t *testing.T) {
	for _, unit := range []int{512, 4096} {
		t.Run(fmt.Sprintf("units of %d bytes", unit), func(t *testing.T) {
			k := ofUnit(ssdKind("", 3), 3, unit)
			k.Vary, k.RunBackground, k.Lose = varySSD, runBackgroundSSD, loseSSD(unit)
			k.Enough = func(t *testing.T, c tabletest.Counters) {
				if c.Lost*100 < c.Steps {
					t.Errorf("%d rows were lost in %d steps: too few to test anything", c.Lost, c.Steps)
				}
			}
			tabletest.Random(t, k)
		})
	}
}
