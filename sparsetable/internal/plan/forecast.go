package plan

import "aibox/sparsetable/internal/slots"

// Forecast is the memory that a table with this plan takes for that many rows, if that is less than
// its budget. As long as all rows are in the cache, carried buckets, for instance, take no memory.
func (p *Plan) Forecast(rows int64) int64 {
	cache := rows * int64(p.Layout.Bytes()+cacheRowBytes)
	o := p.CacheOptions()
	cache += min(o.WindowBytes(), cache/4)
	return p.fixedBytes - p.CarryBytes + cache + slots.BytesFor(p.IndexOptions(), rows)
}

// cacheRowBytes is the size in the cache of a row's bookkeeping: key, links, marks and its place in
// the directory.
const cacheRowBytes = 48
