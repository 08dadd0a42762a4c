package bulk

// Plan says how a large import uses memory.
type Plan struct {
	SmallRows  int64 // imports of up to this many rows go through the cache
	ArenaBytes int64 // maximum memory for the spool's buffers, and later for partitions
	MinBlock   int   // bytes of a write to the spool, unless memory is scarce
}

const (
	// Batch is the maximum number of rows pulled and overwritten at a time.
	Batch = 1024
	// A small import may take 1/smallShare of the cache, whatever it holds.
	smallShare = 16
	// maxArena is enough for all partitions of a spool, with the largest blocks.
	maxArena = 160 << 20
	// Below minBlock, the number of writes matters more than their bytes.
	minBlock = 64 << 10
	// The lists of blocks may take 1/listShare of the borrowed memory; the arena is the rest.
	listShare = 16
)

// PlanFor returns the plan of a table whose cache takes cacheBytes and holds fitRows.
func PlanFor(cacheBytes, fitRows int64) Plan {
	return Plan{
		SmallRows:  max(Batch, fitRows/smallShare),
		ArenaBytes: min(cacheBytes/2, maxArena),
		MinBlock:   minBlock,
	}
}
