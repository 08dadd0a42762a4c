package bulk

// Plan says how a large import uses memory.
type Plan struct {
	SmallRows  int64 // imports of up to so many rows go through the cache
	ArenaBytes int64 // the most memory for the spool's buffers, and later for partitions
	MinBlock   int   // bytes of a write to the spool, unless memory is scarce
}

const (
	// Batch is how many rows are pulled and overwritten at a time.
	Batch = 1024
	// A small import may take this part of the cache, whatever is in it.
	smallShare = 16
	// maxArena is enough for all partitions of a spool, with the largest blocks.
	maxArena = 160 << 20
	// For writes smaller than minBlock their number matters more than their bytes.
	minBlock = 64 << 10
	// The lists of blocks may take one part in listShare of the borrowed
	// memory; the arena is the rest.
	listShare = 16
)

// PlanFor is the plan of a table whose cache takes so many bytes and holds so many rows.
func PlanFor(cacheBytes, fitRows int64) Plan {
	return Plan{
		SmallRows:  max(Batch, fitRows/smallShare),
		ArenaBytes: min(cacheBytes/2, maxArena),
		MinBlock:   minBlock,
	}
}
