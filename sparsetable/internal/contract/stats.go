package contract

// Stats are counters since open, and present sizes.
type Stats struct {
	Kind          string `json:"kind"`
	Rows          int64  `json:"rows"`           // trained rows and placeholders
	MemoryBytes   int64  `json:"memory_bytes"`   // everything the table holds in memory
	BudgetBytes   int64  `json:"budget_bytes"`   // its hard limit; 0: none
	Pulls         int64  `json:"pulls"`          // calls of Pull that succeeded
	Lookups       int64  `json:"lookups"`        // keys pulled
	Hits          int64  `json:"hits"`           // of those, found in memory
	Created       int64  `json:"created"`        // of those, created
	Missing       int64  `json:"missing"`        // of those, looked up and not there
	PinnedSets    int64  `json:"pinned_sets"`    // working sets not yet released
	Expired       int64  `json:"expired"`        // rows dropped by Expire
	Snapshots     int64  `json:"snapshots"`      // snapshots committed
	SnapshotBytes int64  `json:"snapshot_bytes"` // rows written for them, in bytes

	// The following fields are for KindSSD only.

	LackingBytes int64 `json:"lacking_bytes,omitempty"` // the part of BudgetBytes that the process could not have when the table last checked

	LookaheadPasses  int64 `json:"lookahead_passes,omitempty"`   // the number of passes ahead for which the table can now use announcements
	AnnouncedPasses  int64 `json:"announced_passes,omitempty"`   // passes announced but not yet pulled or forgotten
	AnnouncedKeys    int64 `json:"announced_keys,omitempty"`     // keys of announced passes that the table noted
	NotAnnouncedKeys int64 `json:"not_announced_keys,omitempty"` // keys of announced passes for which it had no room

	Prefetched      int64 `json:"prefetched,omitempty"`       // rows read ahead for announced passes
	HitsInFlight    int64 `json:"hits_in_flight,omitempty"`   // hits on rows that other working sets had pinned
	HitsIdle        int64 `json:"hits_idle,omitempty"`        // hits on rows that were not pinned
	FilterNegatives int64 `json:"filter_negatives,omitempty"` // keys for which a filter saved a read
	FalsePositives  int64 `json:"false_positives,omitempty"`  // keys that were not in the bucket read for them
	BucketReads     int64 `json:"bucket_reads,omitempty"`     // buckets read by pulls
	DeviceReads     int64 `json:"device_reads,omitempty"`     // device reads for those buckets
	ReadBytes       int64 `json:"read_bytes,omitempty"`       // bytes of those reads

	CacheBytes int64 `json:"cache_bytes,omitempty"`
	CacheRows  int64 `json:"cache_rows,omitempty"`
	DirtyRows  int64 `json:"dirty_rows,omitempty"` // cached rows with updates that are in no bucket yet
	Evictions  int64 `json:"evictions,omitempty"`
	SavedEarly int64 `json:"saved_early,omitempty"` // rows that had to be saved for a snapshot before they changed or left the cache

	RestoredRows int64 `json:"restored_rows,omitempty"` // rows that opening the table brought back into memory from the snapshot

	Slots       int64 `json:"slots,omitempty"`
	IndexBytes  int64 `json:"index_bytes,omitempty"`  // of slots, filters included
	FilterBytes int64 `json:"filter_bytes,omitempty"` // of all slots
	// FilterBitsPerKey is the filter bits per row in buckets. It is 0 where the budget has no room
	// for filters; a new key then costs a read.
	FilterBitsPerKey float64 `json:"filter_bits_per_key"`

	// MemoryBytes is the sum of CacheBytes, IndexBytes and the following fields.

	BufferBytes  int64 `json:"buffer_bytes,omitempty"`  // reserved for buckets and delta blocks being written or read
	CarryBytes   int64 `json:"carry_bytes,omitempty"`   // reserved for the copies of buckets that working sets carry
	CatalogBytes int64 `json:"catalog_bytes,omitempty"` // the catalog's database and lists of pages
	SetBytes     int64 `json:"set_bytes,omitempty"`     // reference lists of working sets, and scratch memory of Pull
	ScratchBytes int64 `json:"scratch_bytes,omitempty"` // reserved for rewriting buckets, and borrowed by an import or a scan
	OutsideBytes int64 `json:"outside_bytes,omitempty"` // of a table opened for reading only: the index of the snapshot's rows outside of buckets

	FlushedRows      int64 `json:"flushed_rows,omitempty"`  // dirty rows written to buckets
	FlushedSlots     int64 `json:"flushed_slots,omitempty"` // buckets written for them
	Splits           int64 `json:"splits,omitempty"`        // of slots, as rows were added
	Merges           int64 `json:"merges,omitempty"`        // of slots, after rows were dropped
	RewriteReads     int64 `json:"rewrite_reads,omitempty"` // device reads for writing, and for scans
	RewriteReadBytes int64 `json:"rewrite_read_bytes,omitempty"`

	// WrittenBytes is all that was written to SSD: the sum of SnapshotBytes, FlushedBytes,
	// CompactedBytes, ImportedBytes and CatalogWrittenBytes.

	UpdatedRows         int64   `json:"updated_rows,omitempty"`        // rows pulled to be trained, once for each pass, and rows imported
	WriteAmplification  float64 `json:"write_amplification,omitempty"` // WrittenBytes divided by the bytes of those rows and their keys
	WrittenBytes        int64   `json:"written_bytes,omitempty"`
	FlushedBytes        int64   `json:"flushed_bytes,omitempty"`         // buckets written for dirty rows, or because slots were split or merged
	CompactedBytes      int64   `json:"compacted_bytes,omitempty"`       // buckets moved by compaction
	ImportedBytes       int64   `json:"imported_bytes,omitempty"`        // spools and buckets of imports that bypass the cache
	CatalogWrittenBytes int64   `json:"catalog_written_bytes,omitempty"` // pages of the index, and the catalog's own files

	// DiskBytes is what SSDOptions.DirBudgetBytes bounds in all directories: bucket
	// files, the rows that snapshots have outside of them, and the spool of an import.
	DiskBytes       int64 `json:"disk_bytes,omitempty"`
	DiskNeededBytes int64 `json:"disk_needed_bytes,omitempty"` // of bucket files, without those that only snapshots need
	DiskLiveBytes   int64 `json:"disk_live_bytes,omitempty"`   // of live buckets, in whole units of the device
	// DiskPaddingBytes is the part of DiskLiveBytes that holds no row: the headers
	// of buckets and the unused ends of their last units. Compaction cannot reclaim
	// it.
	DiskPaddingBytes int64 `json:"disk_padding_bytes,omitempty"`
	// SpaceAmplification is DiskNeededBytes divided by DiskLiveBytes;
	// SSDOptions.MaxSpaceAmplification bounds it, except in small tables.
	// RowSpaceAmplification is the size of the bucket files divided by the bytes of
	// the rows in buckets and their keys.
	SpaceAmplification    float64 `json:"space_amplification,omitempty"`
	RowSpaceAmplification float64 `json:"row_space_amplification,omitempty"`
}
