package sparsetable

import "aibox/sparsetable/internal/memory"

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
	p := o.planned(o.Layout, forecastUnit).Of(budget, rows, 0)
	return min(budget, p.Forecast(rows))
}
