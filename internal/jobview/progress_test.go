package jobview

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"aibox/internal/terminal"
	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer/report"
)

func trainingView() *report.View {
	return &report.View{
		Phase: report.PhaseTraining, Epoch: 1, Epochs: 3, Step: 2411, Examples: 1234567, Loss: 0.451234, AUC: 0.78126,
		BadRows: 17, BytesRead: 300 << 20, BytesTotal: 1200 << 20, PhaseElapsed: 20 * time.Second,
		Stages: []pipeline.StageStats{
			{Name: "RE", Busy: 5 * time.Second, Blocked: 15 * time.Second},
			{Name: "ST", Busy: time.Second, Starved: 9 * time.Second, Blocked: 10 * time.Second, QueueLen: 2, QueueCap: 2},
			{Name: "EL+JL", Busy: 19 * time.Second, Starved: time.Second, QueueLen: 1, QueueCap: 2},
		},
		Table: sparsetable.Stats{Rows: 4000, MemoryBytes: 3 << 19}, ResidentBytes: 278 << 20,
	}
}

func wantLines(t *testing.T, have []string, want string) {
	t.Helper()
	if got := strings.Join(have, "\n"); got != strings.Trim(want, "\n") {
		t.Errorf("have\n%s\nwant%s", got, want)
	}
}

func TestBlock(t *testing.T) {
	wantLines(t, block(trainingView(), 61728.4, 120), `
training, epoch 1 of 3  [#######-----------------------]  25.0%  300.0 MiB of 1.2 GiB  ETA 1m0s, all epochs 3m40s
1234567 examples  61728 examples/s  step 2411  loss 0.45123  AUC 0.7813  17 bad rows
  RE     [########======================]  25% busy
  ST     [##===============.............]   5% busy  queue 2/2
* EL+JL  [#############################.]  95% busy  queue 1/2
  # busy  = blocked  . starved  * limits the job  table 4000 rows, 1.5 MiB  process 278.0 MiB
`)
	wantLines(t, block(trainingView(), 61728.4, 56), `
training, epoch 1 of 3
[##--------]  25.0%  300.0 MiB of 1.2 GiB  ETA 1m0s, all epochs 3m40s
1234567 examples  61728 examples/s  step 2411
loss 0.45123  AUC 0.7813  17 bad rows
  RE     [####============]  25% busy
  ST     [#========.......]   5% busy  queue 2/2
* EL+JL  [###############.]  95% busy  queue 1/2
  # busy  = blocked  . starved  * limits the job
table 4000 rows, 1.5 MiB  process 278.0 MiB
`)
}

// ssdView is a job with a table on SSD.
func ssdView() *report.View {
	v := trainingView()
	v.Table = sparsetable.Stats{
		Kind: sparsetable.KindSSD, Rows: 20_000_000, MemoryBytes: 250 << 20, BudgetBytes: 256 << 20,
		Pulls: 300, Lookups: 8_000_000, Hits: 6_800_000, HitsInFlight: 4_000_000, HitsIdle: 2_800_000,
		FilterNegatives: 400_000, FalsePositives: 4_100, DeviceReads: 2_400_000, ReadBytes: 9 << 30,
		CacheBytes: 180 << 20, IndexBytes: 40 << 20, FilterBytes: 30 << 20, BufferBytes: 12 << 20, CarryBytes: 8 << 20, CatalogBytes: 8 << 20,
		DirtyRows: 123_456, RestoredRows: 800_000, Prefetched: 910_000, Evictions: 5_400_000, SavedEarly: 3_210, Snapshots: 2,
		RewriteReadBytes: 6 << 30, SetBytes: 1 << 20, ScratchBytes: 2 << 20,
		UpdatedRows: 8_000_000, FlushedRows: 7_654_321, FlushedSlots: 1_200_000, WriteAmplification: 3.214, WrittenBytes: 5 << 30,
		FlushedBytes: 3 << 30, CompactedBytes: 1 << 30, SnapshotBytes: 900 << 20, CatalogWrittenBytes: 124 << 20,
		DiskBytes: 4 << 30, SpaceAmplification: 1.87,
	}
	return v
}

func TestBlockOfTableOnSSD(t *testing.T) {
	have := block(ssdView(), 61728.4, 80)
	wantLines(t, have, `
training, epoch 1 of 3
[##--------]  25.0%  300.0 MiB of 1.2 GiB  ETA 1m0s, all epochs 3m40s
1234567 examples  61728 examples/s  step 2411  loss 0.45123  AUC 0.7813
17 bad rows
  RE     [########======================]  25% busy
  ST     [##===============.............]   5% busy  queue 2/2
* EL+JL  [#############################.]  95% busy  queue 1/2
  # busy  = blocked  . starved  * limits the job
table 20000000 rows  123456 dirty  disk 4.0 GiB, x1.87  800000 restored
memory 250.0 MiB of 256.0 MiB: cache 180.0 MiB, index 40.0 MiB, other 30.0 MiB
process 278.0 MiB
lookups 8000000  hits 85.0%: 50.0% in flight, 35.0% idle
filters avoided 400000 reads, 4100 unnecessary: 1.0%
reads per pull: 8000 of 30.7 MiB  prefetched 910000 rows  evicted 5400000
flushed 7654321 rows in 1200000 buckets
written 5.0 GiB, x3.21  for flushes 3.0 GiB, compaction 1.0 GiB
for snapshots 900.0 MiB, catalog 124.0 MiB
`)
	for _, line := range have {
		if len(line) >= 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	if line := plainLine(ssdView(), 10); !strings.Contains(line, "hits 85.0%: 50.0% in flight, 35.0% idle  reads per pull: 8000 of 30.7 MiB  disk 4.0 GiB, x1.87  memory 278.0 MiB") {
		t.Errorf("a plain line: %s", line)
	}
	var out bytes.Buffer
	terminal.New(&out, true).Logger(0).Info("progress", frame(ssdView(), 10).Attrs()...)
	wantJSONLines(t, out.String())
	for _, part := range []string{`"table_hit_ratio":0.85`, `"table_hit_ratio_in_flight":0.5`, `"table_hit_ratio_idle":0.35`, `"table_filter_negatives":400000`,
		`"table_false_positive_rate":0.0101`, `"table_reads_per_pull":8000`, `"table_flushed_rows":7654321`, `"table_write_amplification":3.214`,
		`"table_space_amplification":1.87`, `"table_budget_bytes":268435456`, `"table_lookups":8000000`, `"table_false_positives":4100`, `"table_dirty_rows":123456`, `"table_restored_rows":800000`, `"process_bytes":291504128`,
		`"table_prefetched_rows":910000`, `"table_evictions":5400000`, `"table_saved_early_rows":3210`, `"table_flushed_slots":1200000`, `"table_set_bytes":1048576`,
		`"table_scratch_bytes":2097152`, `"table_rewrite_read_bytes":6442450944`, `"table_written_bytes":5368709120`, `"table_flushed_bytes":3221225472`,
		`"table_compacted_bytes":1073741824`, `"table_snapshot_bytes":943718400`, `"table_catalog_written_bytes":130023424`, `"table_imported_bytes":0`, `"table_filter_bytes":31457280`} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("progress in JSON lacks %s: %s", part, out.String())
		}
	}
}

// TestSummaryOfTableOnSSD: what a finished job says of its table.
func TestSummaryOfTableOnSSD(t *testing.T) {
	s := ssdView().Table
	s.ImportedBytes = 7 << 20
	var out bytes.Buffer
	tableSummary(&out, &s)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	wantLines(t, lines[len(lines)-8:], `
  cache       6800000 of 8000000 keys found: 85.0%; 50.0% in flight, 35.0% idle
  filters     400000 reads avoided, 4100 unnecessary: 1.0% false positives
  reads       2400000 of 9.0 GiB; per pull: 8000 of 30.7 MiB
  flushes     7654321 rows in 1200000 buckets, 6.0 GiB read for them
  writes      5.0 GiB: write amplification 3.21; space amplification 1.87
              for flushes 3.0 GiB, compaction 1.0 GiB
              for snapshots 900.0 MiB, catalog 124.0 MiB
              for imports 7.0 MiB
`)
	if want := "  rows        910000 prefetched, 5400000 evicted, 800000 restored"; !strings.Contains(out.String(), want) {
		t.Errorf("the summary lacks %q:\n%s", want, out.String())
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

func TestBlockOfOtherPhases(t *testing.T) {
	wantLines(t, block(&report.View{Phase: report.PhaseSaving, PhaseElapsed: 75 * time.Second}, 0, 80), "\nsaving  1m15s\n")
	wantLines(t, block(&report.View{
		Phase: report.PhaseEvaluating, Epoch: 1, Epochs: 1, Examples: 10, BytesRead: 10, BytesTotal: 20, PhaseElapsed: time.Millisecond,
		Stages: []pipeline.StageStats{{Name: "RE"}},
	}, 5, 80), `
evaluating  [###############---------------]  50.0%  10 B of 20 B  ETA -
10 examples  5 examples/s
  RE     [                              ]   -% busy
  # busy  = blocked  . starved  * limits the job  table 0 rows, 0 B
`)
}

func TestPlainLine(t *testing.T) {
	wantLines(t, []string{plainLine(trainingView(), 61728.4)}, `
training, epoch 1 of 3  25.0% (300.0 MiB of 1.2 GiB)  ETA 1m0s, all epochs 3m40s  1234567 examples  61728 examples/s  loss 0.45123  AUC 0.7813  17 bad rows  limited by EL+JL  memory 278.0 MiB
`)
	wantLines(t, []string{plainLine(&report.View{Phase: report.PhaseScanning, PhaseElapsed: 12 * time.Second}, 0)}, "\nscanning  12s\n")
}

func TestShareOfALimitedPhase(t *testing.T) {
	v := trainingView()
	v.MaxExamples = 2 * v.Examples
	if s := share(v); s != 0.5 {
		t.Errorf("half of the examples that the phase is limited to is a share of %v", s)
	}
	if d := eta(v); d != 20*time.Second {
		t.Errorf("ETA %v, want 20s", d)
	}
	v.MaxExamples = 100 * v.Examples // more than there are
	if s := share(v); s != 0.25 {
		t.Errorf("a limit beyond the data changes the share to %v", s)
	}
}

// TestProgressInJSON: undefined figures are left out; JSON has no NaN.
func TestProgressInJSON(t *testing.T) {
	for _, v := range []*report.View{
		trainingView(),
		{Phase: report.PhaseSaving},
		{Phase: report.PhaseTraining, Epoch: 1, Epochs: 1, Loss: math.Inf(1), AUC: math.NaN(), BytesTotal: 10, Examples: 5},
	} {
		var out bytes.Buffer
		terminal.New(&out, true).Logger(0).Info("progress", frame(v, 10).Attrs()...)
		wantJSONLines(t, out.String())
		if s := out.String(); strings.Count(s, "\n") != 1 || strings.Contains(s, "ERROR") || !strings.Contains(s, `"phase":"`+string(v.Phase)+`"`) {
			t.Errorf("progress in JSON: %s", s)
		}
	}
}

func TestRateMeter(t *testing.T) {
	var m rateMeter
	at := time.Unix(0, 0)
	v := &report.View{Phase: report.PhaseTraining, Epoch: 1, Examples: 100, PhaseElapsed: time.Second}
	if rate := m.update(v, at); rate != 100 {
		t.Errorf("first look: %v examples/s, want 100", rate)
	}
	rate := 0.0
	for range 100 { // a steady pace is met, whatever was before
		at = at.Add(time.Second)
		v.Examples += 500
		rate = m.update(v, at)
	}
	if rate != 500 {
		t.Errorf("steady 500 examples/s are shown as %v", rate)
	}
	if rate := m.update(&report.View{Phase: report.PhaseEvaluating, Epoch: 1}, at); rate != 0 {
		t.Errorf("a new phase starts with %v", rate)
	}
}

// TestRateOfLongPasses: examples that come in bursts, of which some frames have none, have the
// rate that they have in the mean, and a standstill shows.
func TestRateOfLongPasses(t *testing.T) {
	for _, frame := range []time.Duration{200 * time.Millisecond, 10 * time.Second} {
		var m rateMeter
		at := time.Unix(0, 0)
		v := &report.View{Phase: report.PhaseTraining, Epoch: 1}
		update := func() float64 {
			at = at.Add(frame)
			v.PhaseElapsed += frame
			return m.update(v, at)
		}
		for i := range 1000 {
			if i%2 == 0 {
				v.Examples += 32768
			}
			rate, want := update(), 32768/(2*frame.Seconds())
			if i > 10 && math.Abs(rate/want-1) > 0.26 {
				t.Fatalf("frame %d of %v: %v examples/s, in the mean there are %v", i, frame, rate, want)
			}
		}
		before, after := update(), 0.0
		for range 100 {
			after = update()
		}
		if after > before/8 {
			t.Errorf("after 100 frames of %v without examples, %v examples/s are shown, and %v before", frame, after, before)
		}
		if len(m.seen) > 64 {
			t.Errorf("%d marks are kept", len(m.seen))
		}
	}
}

// TestProgressOfAResumedPhase: what an earlier process did is done, but says nothing of the speed
// of this one.
func TestProgressOfAResumedPhase(t *testing.T) {
	v := trainingView()
	v.Examples, v.ExamplesBefore = 1_010_000, 1_000_000
	v.BytesTotal, v.BytesRead, v.BytesBefore = 1000, 610, 600
	v.PhaseElapsed = 10 * time.Second
	if s := share(v); s != 0.61 {
		t.Errorf("a share of %v is done, want 0.61", s)
	}
	if left := eta(v).Round(time.Second); left != 390*time.Second {
		t.Errorf("10 of 1000 bytes took 10 s, and 390 are left: ETA %v", left)
	}
	if all := etaAll(v).Round(time.Second); all != 390*time.Second+2*1000*time.Second {
		t.Errorf("two more epochs of 1000 bytes: ETA %v", all)
	}
	var m rateMeter
	if rate := m.update(v, time.Unix(0, 0)); rate != 1000 {
		t.Errorf("10000 examples in 10 s are %v examples/s", rate)
	}
	v.BytesRead = v.BytesBefore
	if left := eta(v); left >= 0 {
		t.Errorf("nothing was read by this process: ETA %v", left)
	}
}

// wantJSONLines fails unless every line of text is a JSON object.
func wantJSONLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("a line that is not JSON (%v): %q", err, line)
		}
	}
}
