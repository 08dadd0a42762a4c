package ssd_test

import (
	"fmt"
	"math"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// slotRows returns the distribution of rows over slots that have mean rows on average: share[k] of
// them have k. Within a round of splits, the slots that were split have half as many rows on
// average as the others, and a table is equally often in every part of a round, by the logarithm of
// its size.
func slotRows(mean float64) (share []float64) {
	const parts = 16
	share = make([]float64, int(2*mean+12*math.Sqrt(mean))+30)
	poisson := func(mean, weight float64) {
		p := math.Exp(-mean) * weight
		for k := range share {
			share[k] += p
			p *= mean / float64(k+1)
		}
	}
	for i := range parts {
		split := math.Exp2((float64(i)+.5)/parts) - 1 // of the slots that the round began with
		poisson(mean*(1+split), (1-split)/(1+split)/parts)
		poisson(mean*(1+split)/2, 2*split/(1+split)/parts)
	}
	return share
}

// bucketCosts returns, for buckets of mean rows of entry bytes, the bytes on disk per row and the
// length of a row's bucket.
func bucketCosts(mean float64, entry, unit int) (diskBytes, readBytes float64) {
	rows := 0.0
	for k, share := range slotRows(mean) {
		if k == 0 {
			continue // no bucket
		}
		bytes := float64((32 + k*entry + unit - 1) / unit * unit)
		rows += share * float64(k)
		diskBytes += share * bytes
		readBytes += share * float64(k) * bytes
	}
	return diskBytes / rows, readBytes / rows
}

// TestShapeUnits checks the size of buckets on devices with blocks of 4096 bytes. For rows of which
// a block holds three or more, no other size is better by more than 2 %. For wider rows, for which
// a shorter bucket would be better, as little of the disk as possible is padding.
func TestShapeUnits(t *testing.T) {
	const unit = 4096
	for values := 1; values < 1200; values += 1 + values/16 {
		l := sparsetable.Layout{ValueDim: values}
		entry := 8 + l.Bytes()
		small := plan.ShapeOf(l, unit).Small
		cost := func(mean int) float64 {
			disk, read := bucketCosts(float64(mean), entry, unit)
			return disk * (22 + 4.4*read/1024)
		}
		best, at := math.Inf(1), 0
		for mean := max(1, small/2); mean <= 2*small; mean += 1 + small/25 {
			if c := cost(mean); c < best {
				best, at = c, mean
			}
		}
		disk, read := bucketCosts(float64(small), entry, unit)
		t.Logf("%4d bytes: %3d rows, %.2f of them on disk, %.0f read; cost %.3f of that of %d rows", entry, small, disk/float64(entry), read, cost(small)/best, at)
		if 3*entry <= unit-32 && cost(small) > 1.02*best {
			t.Errorf("rows of %d bytes: %d to a bucket cost %.3f of what %d do", entry, small, cost(small)/best, at)
		}
		if disk > 1.7*float64(entry) {
			t.Errorf("rows of %d bytes take %.0f", entry, disk)
		}
	}
}

// TestSSDDiskPerRow fills tables of narrow and wide rows at random and compacts them. A row must
// take the space that the shape of buckets predicts, with small and with large blocks, also if the
// table was made with buckets of another size, and the padding must be counted.
func TestSSDDiskPerRow(t *testing.T) {
	for _, c := range []struct {
		unit, bytes, rows int
		most              float64 // bytes on disk per byte of row and key
		other             int     // rows of a bucket when the table was made; 0: as now
	}{
		{512, 20, 50_000, 1.25, 0},
		{512, 96, 50_000, 1.27, 0},
		{512, 300, 20_000, 1.16, 0},
		{512, 1200, 8_000, 1.12, 0},
		{512, 5000, 2_000, 1.07, 0},
		{4096, 20, 50_000, 1.66, 0},
		{4096, 96, 50_000, 1.68, 0},
		{4096, 300, 20_000, 1.72, 0},
		{4096, 1200, 8_000, 1.62, 0},
		{4096, 5000, 2_000, 1.22, 0},
		{4096, 96, 50_000, 1.68, 13}, // as all were made once
		{4096, 96, 50_000, 1.68, 90},
	} {
		t.Run(fmt.Sprintf("units of %d, rows of %d, from %d", c.unit, c.bytes, c.other), func(t *testing.T) {
			t.Parallel()
			l := sparsetable.Layout{ValueDim: (c.bytes - 16) / 4}
			if l.Bytes() != c.bytes {
				t.Fatalf("rows of %d bytes", l.Bytes())
			}
			entry := float64(8 + c.bytes)
			disk := newSSDDiskOf(1, c.unit)
			o := sparsetable.Options{Layout: l, FS: disk}
			o.MemoryBytes = smallest(l, sparsetable.SSDOptions{}, 2000) + 2<<20
			open := func() sparsetable.Table {
				tab, err := ssdKind("", 1).Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return tab
			}
			tab := open()
			if c.other > 0 {
				ssd.SetShape(tab, c.other, 2*c.other, 8*c.other, 0)
			}
			fillRows(t, tab, 0, c.rows)
			flush := func() {
				if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			flush()
			if c.other > 0 {
				if err := ssd.Reshape(t.Context(), tab); err != nil {
					t.Fatal(err)
				}
				if st := tab.Stats(); float64(st.Rows) < .8*float64(c.other)*float64(st.Slots) || float64(st.Rows) > 1.1*float64(c.other)*float64(st.Slots) {
					t.Fatalf("%d rows in %d slots before", st.Rows, st.Slots)
				}
				tabletest.Commit(t, tab, nil)
				if err := tab.Close(); err != nil {
					t.Fatal(err)
				}
				tab = open()
			}
			if err := ssd.Reshape(t.Context(), tab); err != nil {
				t.Fatal(err)
			}
			flush()
			if _, err := sparsetable.Compact(t.Context(), tab, .01, nil); err != nil {
				t.Fatal(err)
			}
			st := tab.Stats()
			rowBytes := int64(c.rows) * int64(entry)
			per := float64(st.DiskLiveBytes) / float64(rowBytes)
			predicted, _ := bucketCosts(float64(st.Rows)/float64(st.Slots), int(entry), c.unit)
			t.Logf("%.1f rows a slot: in use %.3f of the rows' bytes, predicted %.3f, on disk %.3f", float64(st.Rows)/float64(st.Slots), per, predicted/entry, st.RowSpaceAmplification)
			if per > c.most {
				t.Errorf("buckets of %.3f times the rows' bytes, at most %.3f expected", per, c.most)
			}
			if st.DiskPaddingBytes != st.DiskLiveBytes-rowBytes {
				t.Errorf("%d bytes of padding counted, %d in use, %d of rows", st.DiskPaddingBytes, st.DiskLiveBytes, rowBytes)
			}
			// The snapshot has rows outside of buckets.
			if want := float64(bucketBytes(t, tab, st.DiskBytes)) / float64(rowBytes); math.Abs(st.RowSpaceAmplification-want) > 1e-9 || want < per {
				t.Errorf("amplification of rows %.4f, want %.4f", st.RowSpaceAmplification, want)
			}
			checkFilled(t, tab, 0, c.rows)
			if err := tab.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// bucketBytes returns the part of a table's size that is bucket files.
func bucketBytes(t *testing.T, tab sparsetable.Table, all int64) int64 {
	t.Helper()
	infos, err := tab.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range infos {
		all -= ssd.DeltaFileBytes(tab, s.ID)
	}
	return all
}
