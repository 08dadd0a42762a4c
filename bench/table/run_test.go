package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
)

// The command starts itself for every phase; in tests that is the test binary.
func TestMain(m *testing.M) {
	if err := os.Setenv(ownFilesVariable, "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if runExternalMain() {
		return
	}
	if len(os.Args) == 3 && os.Args[1] == childArg {
		if err := command(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runTiny runs the command at a size of a few thousand keys.
func runTiny(t *testing.T, args ...string) (report, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args = append([]string{"-keys", "3000", "-batches", "6", "-lookups", "800", "-budget", "16MiB", "-device-seconds", "0", "-dir", filepath.Join(t.TempDir(), "stores"), "-json", file}, args...)
	var out bytes.Buffer
	if err := command(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(b, &rep); err != nil {
		t.Fatal(err)
	}
	return rep, out.String()
}

// Every store does the same work and comes to the same rows, whether or not a
// trainer lets pulls run ahead.
func TestStoresAgree(t *testing.T) {
	digests := map[string]string{} // by phase
	for _, train := range []string{"0", "1"} {
		rep, text := runTiny(t, "-train-ms", train)
		measured := 0
		for _, r := range rep.Results {
			if r.Unavailable != "" {
				continue
			}
			measured++
			if r.Phase == phaseLoad {
				continue
			}
			if r.PullsPerSecond <= 0 || r.UpdatesPerSecond <= 0 || r.BatchMS <= 0 || r.BatchMSP99 < r.BatchMS || r.PeakBytes <= 0 || r.Batches != 6 {
				t.Errorf("figures of %s %s make no sense: %+v", r.Driver, r.Phase, r)
			}
			if first, ok := digests[r.Phase]; ok && r.Digest != first {
				t.Errorf("%s %s with a trainer of %s ms: digest %s, want %s", r.Driver, r.Phase, train, r.Digest, first)
			} else {
				digests[r.Phase] = r.Digest
			}
			if (r.WaitShare > 0) != (train != "0") {
				t.Errorf("%s %s with a trainer of %s ms: it waits %g", r.Driver, r.Phase, train, r.WaitShare)
			}
			if !strings.Contains(text, r.Driver) {
				t.Errorf("%s is not in the table\n%s", r.Driver, text)
			}
		}
		if want := 2 + 4 + 3; measured < want {
			t.Errorf("%d phases measured, want at least %d\n%s", measured, want, text)
		}
	}
	if digests[phaseCold] == digests[phaseFull] || digests[phaseFull] == digests[phaseHot] {
		t.Errorf("phases replay each other: %v", digests)
	}
}

// A store that loses an update is found out.
func TestCompare(t *testing.T) {
	rocks := rocksDriver.name
	figs := func(batchMS, pulls float64) figures { return figures{BatchMS: batchMS, PullsPerSecond: pulls} }
	results := []result{
		{Driver: "a", Phase: "p2", BudgetBytes: 1, figures: figs(10, 300), Digest: "x"},
		{Driver: "a", Phase: "p3", BudgetBytes: 1, figures: figs(5, 600), Digest: "z"},
		{Driver: rocks, Phase: "p2", BudgetBytes: 1, figures: figs(30, 100), Digest: "x"},
		{Driver: rocks, Phase: "p2", BudgetBytes: 2, figures: figs(20, 150), Digest: "y"},
		{Driver: "b", Phase: "p2", BudgetBytes: 2, Error: "broken"},
	}
	compare(results)
	if r := results[0]; r.TimesRocksDB != 3 || r.PullsTimesRocksDB != 3 || r.DigestDiffers {
		t.Errorf("against RocksDB: %+v", r)
	}
	if r := results[1]; r.TimesRocksDB != 0 || r.TimesP2 != 2 {
		t.Errorf("p3 against p2: %+v", r)
	}
	var differ []bool
	for _, r := range results {
		differ = append(differ, r.DigestDiffers)
	}
	if !slices.Equal(differ, []bool{false, false, false, true, false}) {
		t.Errorf("digests that differ: %v", differ)
	}
}

func TestReportTellsTrouble(t *testing.T) {
	rep := report{Drivers: map[string]string{"a": "about a"}, Results: []result{
		{Driver: "a", Phase: "p1", Error: "no room"},
		{Driver: "b", Phase: "p1", Unavailable: "not built"},
		{Driver: "c", Phase: "p1", Digest: "x", DigestDiffers: true},
	}}
	var out bytes.Buffer
	if err := rep.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"about a", "FAILED a p1 none: no room", "b: not built", "WRONG c p1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// Snapshots on the way cost something and change nothing; parts of the phase are
// reported by themselves.
func TestSnapshotEvery(t *testing.T) {
	rep, text := runTiny(t, "-phases", "p1", "-drivers", "memory,ssd", "-snapshot-every", "2", "-parts", "2")
	for _, r := range rep.Results {
		if len(r.Parts) != 2 || r.Parts[1].Batches != 3 || r.Parts[1].BatchMS <= 0 || r.Parts[1].PullsPerSecond <= 0 {
			t.Errorf("the halves of %s: %+v", r.Driver, r.Parts)
			continue
		}
		want, wantLast := 0, 0
		if r.Driver == ssdDriver.name {
			want, wantLast = 3, 2 // after batches 1, 3 and 5 of 0 to 5
		}
		if r.Snapshots != want || r.Parts[1].Snapshots != wantLast || (r.SnapshotShare > 0) != (want > 0) || r.SnapshotShare >= 1 {
			t.Errorf("%s took %d snapshots, %d at the last, in %g of the time; want %d and %d", r.Driver, r.Snapshots, r.Parts[1].Snapshots, r.SnapshotShare, want, wantLast)
		}
		if r.DigestDiffers {
			t.Errorf("%s: its rows differ", r.Driver)
		}
	}
	for _, want := range []string{"part 2", "between ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// installFio makes a program the only fio there is: it makes the file that it is to read and says
// that it reads 1000 blocks a second for each read in flight.
func installFio(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	const program = `#!/bin/sh
for a in "$@"; do
	case $a in
	--filename=*) : > "${a#--filename=}" ;;
	--iodepth=*) echo "{\"jobs\": [{\"read\": {\"iops\": ${a#--iodepth=}000}}]}" ;;
	esac
done
`
	if err := os.WriteFile(filepath.Join(dir, "fio"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// The device is measured beside the stores, and its share is told.
func TestDevice(t *testing.T) {
	installFio(t)
	stores := filepath.Join(t.TempDir(), "stores")
	rep, text := runTiny(t, "-phases", "p2", "-drivers", "ssd,memory", "-keys", "80000", "-device-seconds", "0.01", "-parts", "2", "-dir", stores)
	for i, d := range rep.Device {
		if want := float64(1000 * deviceDepths[i%2]); d.PerSecond != want {
			t.Errorf("%+v, want %g reads a second", d, want)
		}
	}
	if n := len(rep.Device); n != 3*len(deviceDepths) || rep.Device[0].When != "before" || rep.Device[0].ReadBytes != blockBytes || rep.Device[n-1].When != "after" || rep.Device[n-1].ReadBytes%deviceUnit != 0 {
		t.Errorf("measured %+v, want 4 KiB before, 4 KiB and ssd's size after", rep.Device)
	}
	for _, r := range rep.Results {
		if r.Driver == ssdDriver.name && r.Phase == phaseFull && (r.DeviceShare <= 0 || r.Parts[1].DeviceReads > 0 && r.Parts[1].DeviceShare <= 0) {
			t.Errorf("ssd's share is %g, at the last %g, with %g reads a batch", r.DeviceShare, r.Parts[1].DeviceShare, r.DeviceReads)
		}
	}
	if !strings.Contains(text, "of device") || !strings.Contains(text, "random reads") {
		t.Errorf("the device is missing in\n%s", text)
	}
	if left, err := os.ReadDir(stores); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// Without fio, or with one that fails, the stores are measured all the same.
func TestNoDevice(t *testing.T) {
	for _, program := range []string{"", "#!/bin/sh\nexit 1\n"} {
		dir := t.TempDir()
		if program != "" {
			if err := os.WriteFile(filepath.Join(dir, "fio"), []byte(program), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir)
		rep, text := runTiny(t, "-phases", "p1", "-drivers", "memory", "-device-seconds", "0.01")
		if len(rep.Results) != 1 || len(rep.Device) > 0 || strings.Contains(text, "of device") {
			t.Errorf("%d results, device %+v\n%s", len(rep.Results), rep.Device, text)
		}
	}
}

func TestDeviceShares(t *testing.T) {
	m := deviceMeter{rates: []deviceRate{{ReadBytes: 4096, PerSecond: 100}, {ReadBytes: 1024, PerSecond: 200}, {ReadBytes: 4096, PerSecond: 120}}}
	results := []result{
		{Driver: ssdDriver.name, figures: figures{ReadsPerSecond: 150}, Parts: []figures{{ReadsPerSecond: 100}}},
		{Driver: "pebble", figures: figures{ReadsPerSecond: 60}},
	}
	m.shares(results, 1024)
	if results[0].DeviceShare != 0.75 || results[0].Parts[0].DeviceShare != 0.5 || results[1].DeviceShare != 0.5 {
		t.Errorf("shares %g, %g, %g; want 0.75, 0.5, 0.5", results[0].DeviceShare, results[0].Parts[0].DeviceShare, results[1].DeviceShare)
	}
	results = []result{{Driver: ssdDriver.name, Phase: phaseFull, Store: map[string]any{"device_reads": 10.0, "read_bytes": 10_300.0}}}
	if got := meanReadBytes(results); got != 1536 {
		t.Errorf("reads of 1030 bytes are measured as %d", got)
	}
}

// With few keys everything is in memory, and goroutines share mini-batches
// without changing what comes out.
func TestCached(t *testing.T) {
	rep, text := runTiny(t, "-phases", "cached")
	var names []string
	for _, r := range rep.Results {
		names = append(names, r.Driver)
		if r.DigestDiffers || r.Digest == "" || r.Batches != 6 || r.PullsPerSecond <= 0 || r.UpdatesPerSecond <= 0 || r.DeviceReads != 0 {
			t.Errorf("%s: %+v", r.Driver, r)
		}
	}
	if !slices.Equal(names, []string{memoryDriver.name, ssdDriver.name}) {
		t.Errorf("%q were measured\n%s", names, text)
	}
}

// Parts of a mini-batch come to the digest of the whole.
func TestDigestPower(t *testing.T) {
	for _, l := range []sparsetable.Layout{{ValueDim: 2, StateDim: 1}, {ValueDim: 71}} {
		r := flatRows{words: l.Words(), data: make([]float32, 9*l.Words())}
		reset := func() {
			for i := range 9 {
				clear(r.Row(i))
				initRow(l, uint64(i), r.Row(i))
			}
			update(l, 9, &r, 0) // the digest that follows is of updated rows
		}
		reset()
		want := update(l, 9, &r, 12345)
		for cut := range 10 {
			reset()
			digest := update(l, cut, &r, 12345)
			rest := flatRows{words: l.Words(), data: r.data[cut*l.Words():]}
			if got := digest*digestPower(9-cut) + update(l, 9-cut, &rest, 0); got != want {
				t.Errorf("%v cut at %d: digest %x, want %x", l, cut, got, want)
			}
		}
	}
}
