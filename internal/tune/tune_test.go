package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/score"
)

func TestRounds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		trials   int
		examples int64
		want     string
	}{
		{26, 9_000_000, "26 of 1000000, 9 of 3000000, 3 of 0"},
		{80, 9_000_000, "80 of 333333, 27 of 1000000, 9 of 3000000, 3 of 0"},
		{26, 90_000, "26 of 20000, 9 of 30000, 3 of 0"},
		{26, 30_000, "26 of 20000, 3 of 0"}, // 9 trials would have had as many examples as 26
		{26, 10_000, "26 of 0"},
		{3, 9_000_000, "3 of 0"},
		{1, 9_000_000, "1 of 0"},
	}
	for _, c := range cases {
		var got []string
		for _, r := range Rounds(c.trials, c.examples) {
			got = append(got, fmt.Sprintf("%d of %d", r.Trials, r.Examples))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%d trials, %d examples: %s, want %s", c.trials, c.examples, text, c.want)
		}
	}
	if got := Readings(Rounds(26, 9_000_000), 9_000_000); math.Abs(got-(27./9+10./3+4)) > 1e-9 {
		t.Errorf("the data are read %.3f times", got)
	}
}

// jobs are job files of all models and optimizers.
func jobs() []string {
	job := func(model, rows, dense string) string {
		return fmt.Sprintf("model: {%s}\noptimizer: {rows: {kind: %s}, dense: {kind: %s}}\ndata: {train: [a.csv], format: csv, columns: [{name: y, role: label}, {name: x, role: dense}, {name: a, role: sparse}, {name: b, role: sparse}]}\noutput: {model_dir: m}\n", model, rows, dense)
	}
	out := []string{job("kind: aibox, towers: [{name: t, dense: [x], layers: [9]}]", "adam", "sgd")}
	for _, kind := range configs.ModelKinds {
		out = append(out, job("kind: "+kind, "adagrad", "adam"))
	}
	// What holds all rows back is the same for rows and linear weights.
	out = append(out, job("kind: fm", "adagrad}, linear: {kind: adagrad, weight_decay: 0.1", "adam"), job("kind: fm", "adam}, linear: {kind: adagrad, table_l2: 0.1", "adam"))
	for _, rows := range []string{"sgd", "rowwise_adagrad", "adam", "ftrl"} {
		for _, dense := range []string{"sgd", "momentum", "adagrad", "adamw"} {
			out = append(out, job("kind: deepfm", rows, dense))
		}
	}
	return out
}

// Every value of every dimension is one that the job file may have, and a change, and can be written
// into the file.
func TestSpace(t *testing.T) {
	t.Parallel()
	show := func(text string, sets []string) (*configs.Job, string) {
		job, err := configs.Parse("job.yaml", []byte(text), configs.LoadOptions{Set: sets})
		if err != nil {
			t.Errorf("%s\n%v: %v", text, sets, err)
			return nil, ""
		}
		var shown strings.Builder
		if err := job.Show(&shown); err != nil {
			t.Fatal(err)
		}
		return job, shown.String()
	}
	for _, text := range jobs() {
		job, as := show(text, nil)
		if job == nil {
			continue
		}
		space := Space(job, Groups)
		if len(space) < 4 {
			t.Errorf("only %d dimensions of\n%s", len(space), text)
		}
		for _, d := range space {
			for i, settings := range d.Values {
				sets := overrides(Trial{Settings: settings})
				if _, changed := show(text, sets); (changed == as) != (i == 0) {
					t.Errorf("%s\n%s: value %d, %v, changes nothing", text, d.Name, i, settings)
				}
				if i != 1 {
					continue
				}
				if _, err := configs.Edited("job.yaml", []byte(text), configs.LoadOptions{Set: sets}); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func smallSpace() []Dimension {
	return []Dimension{
		{"a", [][]Setting{nil, {{"a", "1"}}, {{"a", "2"}}, {{"a", "3"}}, {{"a", "4"}}}},
		{"b", [][]Setting{nil, {{"b", "1"}}, {{"b", "2"}}}},
		{"c", [][]Setting{nil, {{"c", "1"}, {"d", "1"}}}},
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	space := smallSpace()
	trials := Draw(space, 24, 7)
	if !reflect.DeepEqual(trials, Draw(space, 24, 7)) {
		t.Error("the same seed gives other trials")
	}
	if reflect.DeepEqual(trials, Draw(space, 24, 8)) {
		t.Error("another seed gives the same trials")
	}
	seen, as := map[string]bool{}, 0
	for i, trial := range trials {
		if trial.ID != i || seen[trial.Changes()] {
			t.Errorf("trial %d at %d: %s", trial.ID, i, trial.Changes())
		}
		seen[trial.Changes()] = true
		if strings.Contains(trial.Changes(), "a=1") {
			as++
		}
	}
	if trials[0].Changes() != "original job" || as < 1 || as > 6 { // three of 24 that are drawn, and those drawn again
		t.Errorf("%s; a=1 in %d trials", trials[0].Changes(), as)
	}
	if n := len(Draw(space, 1000, 7)); n != 30 {
		t.Errorf("%d different trials where there are 30", n)
	}
}

// lossOf is what a made-up model achieves: a=3 and b=1 are best, c=1 diverges.
func lossOf(trial Trial, examples int64) *Result {
	loss := 1.0
	for _, s := range trial.Settings {
		switch s.String() {
		case "a=3":
			loss -= 0.3
		case "b=1":
			loss -= 0.2
		case "c=1":
			return &Result{Failure: "diverged"}
		}
	}
	if examples == 0 {
		loss -= 0.1
	}
	return &Result{LogLoss: loss, AUC: score.Value(1 - loss/2), Epoch: 1, HeldOut: 1000}
}

var errStopped = errors.New("stopped")

// A search finds the best settings, and one that is stopped at any trial, also in the middle of a line of its
// journal, goes on to the same results without training a trial again.
func TestSearch(t *testing.T) {
	t.Parallel()
	trials := Draw(smallSpace(), 24, 1)
	rounds := Rounds(len(trials)-1, 1_000_000)
	open := func(dir string) *Journal {
		j, err := OpenJournal(dir, map[string]string{"seed": "1"})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	for _, metric := range []Metric{LogLoss, AUC} {
		all := 0
		search := &Search{Trials: trials, Rounds: rounds, Metric: metric, Run: func(_ context.Context, trial Trial, round int, examples int64) (*Result, error) {
			all++
			return lossOf(trial, examples), nil
		}}
		best := math.Inf(1)
		for _, trial := range trials {
			if r := lossOf(trial, 0); r.Failure == "" {
				best = min(best, r.LogLoss)
			}
		}
		want, err := search.Do(t.Context())
		if err != nil || want.Result.LogLoss != best || want.AsItIs.Trial != 0 || best > want.AsItIs.LogLoss-0.25 {
			t.Fatalf("%v: %+v", err, want)
		}
		for n := range all {
			dir := t.TempDir()
			left, calls := n, map[string]int{}
			run := func(_ context.Context, trial Trial, round int, examples int64) (*Result, error) {
				if left--; left < 0 {
					return nil, errStopped
				}
				calls[fmt.Sprint(trial.ID, round)]++
				return lossOf(trial, examples), nil
			}
			journal := open(dir)
			if _, err := (&Search{trials, rounds, metric, run, journal}).Do(t.Context()); !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			if err := journal.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, JournalName)
			data, err := os.ReadFile(path)
			if err == nil && n%2 == 1 { // killed while it wrote
				err = os.WriteFile(path, append(data, `{"trial":3,"rou`...), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			left = all
			journal = open(dir)
			if journal.Results() != n {
				t.Errorf("stopped at %d: %d results in the journal", n, journal.Results())
			}
			got, err := (&Search{trials, rounds, metric, run, journal}).Do(t.Context())
			if err := errors.Join(err, journal.Close()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("stopped at %d: %+v, want %+v", n, got, want)
			}
			for trial, times := range calls {
				if times != 1 {
					t.Errorf("stopped at %d: trial and round %s ran %d times", n, trial, times)
				}
			}
		}
	}
}

// A result counts for the settings that it was achieved with: another version may draw others for
// the same number.
func TestSearchByAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, c := range []struct {
		settings string
		runs     int
	}{{"1", 2}, {"3", 1}, {"3", 0}, {"1", 0}} {
		journal, err := OpenJournal(dir, map[string]string{"seed": "1"})
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		search := &Search{Trials: []Trial{{}, {ID: 1, Settings: []Setting{{"a", c.settings}}}}, Rounds: []Round{{Trials: 1}}, Metric: LogLoss, Journal: journal,
			Run: func(_ context.Context, trial Trial, _ int, examples int64) (*Result, error) {
				runs++
				return lossOf(trial, examples), nil
			}}
		best, err := search.Do(t.Context())
		if err := errors.Join(err, journal.Close()); err != nil {
			t.Fatal(err)
		}
		if better := c.settings == "3"; runs != c.runs || (best.Trial.ID == 1) != better {
			t.Errorf("search %d: %d trials ran, the best is %+v", i, runs, best.Trial)
		}
	}
}

// The job as it is takes part in every round, however bad it is, and a search in which nothing
// makes a model fails.
func TestSearchWithoutModels(t *testing.T) {
	t.Parallel()
	trials := Draw(smallSpace(), 24, 1)
	rounds := Rounds(len(trials)-1, 1_000_000)
	var zero []int
	search := &Search{Trials: trials, Rounds: rounds, Metric: LogLoss, Run: func(_ context.Context, trial Trial, round int, examples int64) (*Result, error) {
		if trial.ID == 0 {
			zero = append(zero, round)
			return &Result{Failure: "diverged"}, nil
		}
		return lossOf(trial, examples), nil
	}}
	b, err := search.Do(t.Context())
	if err != nil || b.Trial.ID == 0 || len(zero) != len(rounds) {
		t.Errorf("%v, best trial %d, rounds of trial 0: %v", err, b.Trial.ID, zero)
	}
	search.Run = func(context.Context, Trial, int, int64) (*Result, error) { return &Result{Failure: "diverged"}, nil }
	if _, err := search.Do(t.Context()); err == nil {
		t.Error("nothing made a model, and there is no error")
	}
}

func TestJournalOfAnotherSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := OpenJournal(dir, map[string]string{"seed": "1", "metric": "auc"})
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenJournal(dir, map[string]string{"seed": "2", "metric": "auc"})
	var different *DifferentError
	if !errors.As(err, &different) || !strings.Contains(err.Error(), "its seed was 1 and is 2 now") {
		t.Error(err)
	}
	path := filepath.Join(dir, JournalName)
	for _, text := range []string{"no journal\n", "\n", "[1]\n"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(dir, map[string]string{"seed": "1"}); !errors.As(err, &different) {
			t.Errorf("%q: %v", text, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("the file was changed: %q, %v", data, err)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	trials := Draw(smallSpace(), 24, 1)
	rounds := Rounds(len(trials)-1, 1_000_000)
	search := &Search{Trials: trials, Rounds: rounds, Metric: LogLoss, Run: func(_ context.Context, trial Trial, round int, examples int64) (*Result, error) {
		return lossOf(trial, examples), nil
	}}
	b, err := search.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Table(rounds)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for _, want := range []string{"a=3", "all", fmt.Sprintf("%.5f", b.Result.LogLoss)} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("no %q in %q", want, lines[1])
		}
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "failed") }) || !strings.Contains(text, fmt.Sprintf("(%+.5f relative to the original job)", b.Result.LogLoss-b.AsItIs.LogLoss)) || strings.Contains(text, "chance") {
		t.Error(text)
	}
	b.Result.HeldOut, b.Result.AUC = 9, score.Undefined() // all of one label
	if text, err = b.Table(rounds); err != nil || !strings.Contains(text, "AUC -. ") || !strings.Contains(text, "But only 9 examples were held out") {
		t.Error(text, err)
	}
}
