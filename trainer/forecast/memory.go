package forecast

// Memory is the memory of a process by purpose, in bytes. It is either a forecast, which a job
// reaches if its data are large enough, or what a run has taken.
type Memory struct {
	Table   int64 `json:"table_bytes"`   // the embedding table; in a forecast 0 if nothing bounds it, so that it grows with the rows
	Reading int64 `json:"reading_bytes"` // text and examples between files and passes, the shuffle buffer included
	Passes  int64 `json:"passes_bytes"`  // passes read, pulled and trained
	// Priority is what snapshots.priority takes to choose rows and to hold those that are being
	// saved.
	Priority int64 `json:"priority_bytes,omitempty"`
	Engine   int64 `json:"engine_bytes"`  // activations, gradients and gathered rows
	Dense    int64 `json:"dense_bytes"`   // dense parameters, their gradients and optimizer state
	Runtime  int64 `json:"runtime_bytes"` // the program, and garbage that Go's collector has not collected yet
	Process  int64 `json:"process_bytes"` // everything; of a run, its largest resident set
}

// Attrs returns m as attributes of a log line.
func (m *Memory) Attrs() []any {
	return []any{"table", m.Table, "reading", m.Reading, "passes", m.Passes, "priority", m.Priority, "engine", m.Engine, "dense", m.Dense, "runtime", m.Runtime, "process", m.Process}
}
