package forecast

import (
	"strings"
	"testing"

	"aibox/configs"
)

// TestExcess: a job that may need more memory than there is gets advice about what takes most of it.
func TestExcess(t *testing.T) {
	job := func(kind string, readAhead configs.Bytes, shuffle int) *configs.Job {
		j := &configs.Job{}
		j.SparseTable.Kind, j.Pipeline.ReadAheadBytes, j.Data.ShuffleBuffer = kind, readAhead, shuffle
		return j
	}
	for name, c := range map[string]struct {
		m    Memory
		job  *configs.Job
		want string
	}{
		"table on SSD":        {Memory{Table: 5, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 0), "lower sparse_table.memory_bytes"},
		"much too large":      {Memory{Table: 50, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 40}, job("ssd", 1, 0), "is not enough, the cache of its table stays smaller: lower sparse_table.memory_bytes"},
		"table in memory":     {Memory{Table: 5, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 11}, job("memory", 1, 0), "set sparse_table.kind: ssd"},
		"passes ahead":        {Memory{Table: 4, Passes: 5, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 0), "lower pipeline.read_ahead_bytes"},
		"passes":              {Memory{Table: 4, Passes: 5, Runtime: 50 << 20, Process: 50<<20 + 11}, job("memory", 1, 0), "lower pipeline.batches_per_pass"},
		"passes, none ahead":  {Memory{Table: 4, Passes: 5, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 0, 0), "lower pipeline.batches_per_pass"},
		"reading":             {Memory{Reading: 5, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 0), "lower pipeline.chunk_bytes"},
		"shuffling":           {Memory{Reading: 5, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 9), "lower data.shuffle_buffer"},
		"large mini-batches":  {Memory{Engine: 5, Passes: 4, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 0), "lower training.batch_size"},
		"a large network":     {Memory{Engine: 4, Dense: 5, Runtime: 50 << 20, Process: 50<<20 + 11}, job("ssd", 1, 0), "make the layers of the model fewer or narrower"},
		"the table unbounded": {Memory{Engine: 5, Runtime: 50 << 20, Process: 50<<20 + 11}, job("memory", 1, 0), "and for the table, which grows with the rows"},
	} {
		if got := c.m.Excess(c.job, programBytes); !strings.Contains(got, c.want) || !strings.Contains(got, "the job may need 40.0 MiB of memory") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, enough := range []int64{programBytes + 40, -1} {
			if got := c.m.Excess(c.job, enough); got != "" {
				t.Errorf("%s: with %d bytes %q", name, enough, got)
			}
		}
	}
}
