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
)

// The command starts itself for every phase; in tests that is the test binary.
func TestMain(m *testing.M) {
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
	args = append([]string{"-keys", "3000", "-batches", "6", "-lookups", "800", "-budget", "16MiB", "-dir", filepath.Join(t.TempDir(), "stores"), "-json", file}, args...)
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
		if want := 2 + 2 + 4 + 3; measured < want {
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
	results := []result{
		{Driver: "a", Phase: "p2", BudgetBytes: 1, BatchMS: 10, PullsPerSecond: 300, Digest: "x"},
		{Driver: "a", Phase: "p3", BudgetBytes: 1, BatchMS: 5, PullsPerSecond: 600, Digest: "z"},
		{Driver: rocks, Phase: "p2", BudgetBytes: 1, BatchMS: 30, PullsPerSecond: 100, Digest: "x"},
		{Driver: rocks, Phase: "p2", BudgetBytes: 2, BatchMS: 20, PullsPerSecond: 150, Digest: "y"},
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
