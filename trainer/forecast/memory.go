package forecast

// Memory is what a process takes, by purpose, in bytes: a forecast, which a job
// reaches when its data is large enough, or what a run has taken.
type Memory struct {
	Table   int64 `json:"table_bytes"`   // the embedding table; in a forecast 0 if nothing bounds it: then it grows with the rows
	Reading int64 `json:"reading_bytes"` // text and examples between files and passes, the shuffle buffer included
	Passes  int64 `json:"passes_bytes"`  // passes read, pulled and trained
	// Priority is what chooses rows, and holds those on their way, with snapshots.priority.
	Priority int64 `json:"priority_bytes,omitempty"`
	Engine   int64 `json:"engine_bytes"`  // activations, gradients and gathered rows
	Dense    int64 `json:"dense_bytes"`   // dense parameters, their gradients and optimizer state
	Runtime  int64 `json:"runtime_bytes"` // the program, and what Go's collector lets lie before it collects
	Process  int64 `json:"process_bytes"` // all of it; of a run: its largest resident set
}

// Attrs are m for a line of log.
func (m *Memory) Attrs() []any {
	return []any{"table", m.Table, "reading", m.Reading, "passes", m.Passes, "priority", m.Priority, "engine", m.Engine, "dense", m.Dense, "runtime", m.Runtime, "process", m.Process}
}
