package sparsetable

import (
	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/slots"
)

// forecastUnit is the unit of the device that a forecast assumes.
const forecastUnit = 4096

// ForecastBytes is how much memory a new table of o takes at most when it gets that many
// rows; rows < 0 means that nobody knows how many. It is 0 if nothing bounds the memory.
// Options.Dir is not looked at.
func ForecastBytes(o Options, rows int64) int64 {
	if o.Kind == KindSSD {
		return forecastSSD(o, rows)
	}
	if rows < 0 {
		return o.MemoryBytes
	}
	n := memory.ForecastBytes(o.Layout, rows)
	if o.MemoryBytes > 0 {
		return min(n, o.MemoryBytes)
	}
	return n
}

// forecastSSD is the budget, or less for a table that is much smaller: buckets that wait
// to be written again, for instance, take no memory as long as all rows are in the cache.
func forecastSSD(o Options, rows int64) int64 {
	o.ensureSSDDefaults()
	budget := o.MemoryBytes
	if rows < 0 {
		return budget
	}
	p := planSSD(budget, o.Layout, forecastUnit, o.SSD, rows, 0)
	cache := rows * int64(o.Layout.Bytes()+cacheRowBytes)
	cache += min(p.cacheOptions(o.Layout, o.SSD).WindowBytes(), cache/4)
	return min(budget, p.fixedBytes-p.carryBytes+cache+slots.BytesFor(p.indexOptions(), rows))
}

// cacheRowBytes is what the cache takes for a row beside the row: key, links, marks and its
// place in the directory.
const cacheRowBytes = 48
