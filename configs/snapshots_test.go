package configs

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSnapshotInterval(t *testing.T) {
	for text, want := range map[string]SnapshotInterval{
		"auto": {Auto: true}, "none": {}, "10m": {Time: 10 * time.Minute}, "1h30m": {Time: 90 * time.Minute},
		"1 pass": {Passes: 1}, "50 passes": {Passes: 50}, "1_000_000 examples": {Examples: 1e6}, "5e7 examples": {Examples: 5e7},
	} {
		if have, err := ParseSnapshotInterval(text); err != nil || have != want {
			t.Errorf("%s: %+v, %v; want %+v", text, have, err, want)
		}
	}
	for _, text := range []string{"", "0s", "-1m", "10", "ten minutes", "0 passes", "1.5 passes", "-3 examples", "NaN examples", "1e30 examples", "5 steps", "5 passes more"} {
		if have, err := ParseSnapshotInterval(text); err == nil {
			t.Errorf("%q is read as %+v", text, have)
		}
	}
}

func TestRemoteInterval(t *testing.T) {
	for text, want := range map[string]RemoteInterval{
		"auto": {Auto: true}, "1h": {Time: time.Hour}, "1 snapshot": {Snapshots: 1}, " 20 snapshots ": {Snapshots: 20}, "1e1 snapshots": {Snapshots: 10},
	} {
		if have, err := ParseRemoteInterval(text); err != nil || have != want {
			t.Errorf("%s: %+v, %v; want %+v", text, have, err, want)
		}
	}
	for _, text := range []string{"", "none", "0s", "-1h", "3", "0 snapshots", "1.5 snapshots", "3 passes", "3 snapshots more"} {
		if have, err := ParseRemoteInterval(text); err == nil {
			t.Errorf("%q is read as %+v", text, have)
		}
	}
}

// TestSnapshotsAreChecked: a wrong interval is a fault of its line.
func TestSnapshotsAreChecked(t *testing.T) {
	_, err := Parse("job.yaml", []byte(strings.Join([]string{
		"data: {train: [a.tsv], format: criteo}", "model: {kind: lr}", "output: {model_dir: m}", "snapshots:", "  every: 5 minuets", "",
	}, "\n")), LoadOptions{})
	var faults FaultsError
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != 5 || faults[0].Path != "snapshots.every" {
		t.Errorf("%v", err)
	}
	for _, set := range []string{"snapshots.remote_every=often", "recovery.mean_time_between_failures=rarely", "recovery.mean_time_between_failures=0s"} {
		_, err := Parse("job.yaml", []byte("data: {train: [a.tsv], format: criteo}\nmodel: {kind: lr}\noutput: {model_dir: m}\n"), LoadOptions{Set: []string{set}})
		if path, _, _ := strings.Cut(set, "="); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// TestDifferences: jobs are compared by what they mean, not by how they are written.
func TestDifferences(t *testing.T) {
	parse := func(set ...string) *Job {
		j, err := Parse("job.yaml", []byte("data: {train: [a.tsv], format: criteo}\nmodel: {kind: dlrm}\noutput: {model_dir: m}\n"), LoadOptions{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	if d, err := parse("training.epochs=1").Differences(parse("training.batch_size=512")); err != nil || len(d) > 0 {
		t.Errorf("defaults that were written out differ in %v, %v", d, err)
	}
	d, err := parse("training.epochs=2", "data.train=[a.tsv, b.tsv]").Differences(parse("model.hidden_layers=[3]"))
	if err != nil || strings.Join(d, " ") != "data.train model.hidden_layers training.epochs" {
		t.Errorf("differences %v, %v", d, err)
	}
	if d, err := parse().Differences(parse("training.early_stopping={metric: auc}", "training.epochs=3", "data.eval=[e.tsv]")); err != nil || len(d) < 3 {
		t.Errorf("differences %v, %v", d, err)
	}
}
