package trainer

import (
	"time"

	"aibox/internal/process"
	"aibox/sparsetable"
)

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

// memory is what the run has taken so far.
func (r *run) memory(table sparsetable.Stats) Memory {
	m := Memory{Table: table.MemoryBytes, Passes: r.table.passBytes.Most(), Process: processMemory().Peak}
	if r.engine != nil {
		m.Engine = r.engine.MemoryBytes()
		m.Dense = denseBytes(r.model, r.state.Engine.Dense)
	}
	m.Reading = readingForecast(r.job, &r.Parts, DataSize{Examples: max(1, r.mostRead())}) // it is not counted: at most
	m.Priority = r.snapshots.uploads.priorityBytes()
	m.Runtime = max(0, m.Process-m.Table-m.Passes-m.Priority-m.Engine-m.Dense)
	m.Reading = min(m.Reading, m.Runtime)
	m.Runtime -= m.Reading
	return m
}

// mostRead is how many examples one reading of the data has had at most.
func (r *run) mostRead() int64 { return max(r.state.Examples, r.summary.EvalRows.Good) }

// Attrs are m for a line of log.
func (m *Memory) Attrs() []any {
	return []any{"table", m.Table, "reading", m.Reading, "passes", m.Passes, "priority", m.Priority, "engine", m.Engine, "dense", m.Dense, "runtime", m.Runtime, "process", m.Process}
}

// processMemory is the resident set of the process, or zeros if the system does not tell
// it.
func processMemory() process.Memory {
	m, err := process.ReadMemory()
	if err != nil {
		return process.Memory{}
	}
	return m
}

// processorTime is the time that the process has spent on cores so far, or 0 if the system
// does not tell it.
func processorTime() time.Duration {
	used, err := process.ProcessorTime()
	if err != nil {
		return 0
	}
	return used
}
