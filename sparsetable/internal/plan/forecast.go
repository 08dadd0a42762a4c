package plan

import "aibox/sparsetable/internal/slots"

// Forecast is what the table takes that is planned so, if that is less than its budget: as
// long as all rows are in the cache, buckets that wait to be written again, for instance,
// take no memory.
func (p *Plan) Forecast(rows int64) int64 {
	cache := rows * int64(p.Layout.Bytes()+cacheRowBytes)
	o := p.CacheOptions()
	cache += min(o.WindowBytes(), cache/4)
	return p.fixedBytes - p.CarryBytes + cache + slots.BytesFor(p.IndexOptions(), rows)
}

// cacheRowBytes is what the cache takes for a row beside the row: key, links, marks and its
// place in the directory.
const cacheRowBytes = 48
