package trainer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/chain"
	"aibox/trainer/generations"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/start"
)

// modelChain is a chain of nights of one job.
type modelChain struct {
	t   *testing.T
	set []string
	log bytes.Buffer // of the last night
}

// newChain returns a chain whose model directories are named by a template. AT in the template
// stands for a new directory.
func newChain(t *testing.T, dir string, set ...string) (c *modelChain, at string) {
	t.Helper()
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	at = t.TempDir()
	all := []string{"data.train=[" + log + "/train-0.tsv]", `output.model_dir="` + strings.ReplaceAll(dir, "AT", at) + `"`, "training.warm_start=latest", "training.max_examples=640", "timezone=UTC"}
	return &modelChain{t: t, set: append(all, set...)}, at
}

func (c *modelChain) job(date string, set ...string) *configs.Job {
	c.t.Helper()
	j, err := configs.Parse("test.yaml", []byte(strings.Replace(testjobs.Text, "KIND", "lr", 1)), configs.LoadOptions{Set: append(c.set[:len(c.set):len(c.set)], set...), Date: date})
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// night trains the job of a date.
func (c *modelChain) night(date string, set ...string) (*report.Summary, error) {
	c.t.Helper()
	c.log.Reset()
	return Train(c.t.Context(), c.job(date, set...), Options{Logger: slog.New(slog.NewTextHandler(&c.log, nil)), Version: "test"})
}

// starts fails unless the night of a date starts from the model in want, in which AT stands for the
// new directory; "" means a new model.
func (c *modelChain) starts(date, want string, set ...string) *report.Summary {
	c.t.Helper()
	s, err := c.night(date, set...)
	if err != nil {
		c.t.Fatalf("the night %s: %v", date, err)
	}
	if s.WarmStart != want {
		c.t.Fatalf("the night %s started from %q, want %q", date, s.WarmStart, want)
	}
	return s
}

// said fails unless the log of the last night has all of the texts.
func (c *modelChain) said(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		if !strings.Contains(c.log.String(), text) {
			c.t.Errorf("the log does not say %q:\n%s", text, c.log.String())
		}
	}
}

// TestLatestWithoutDates checks that each run starts from the model before, and the first one with
// a new model.
func TestLatestWithoutDates(t *testing.T) {
	c, at := newChain(t, "AT/m")
	first := c.starts("", "")
	c.said("there is no model of an earlier run, so training begins with a new one")
	second := c.starts("", at+"/m@1")
	c.said("training.warm_start: latest", "generation=gen-000001")
	third := c.starts("", at+"/m@2")
	if second.Steps != 2*first.Steps || third.Steps != 3*first.Steps {
		t.Errorf("steps %d, %d, %d", first.Steps, second.Steps, third.Steps)
	}
	m, err := modeldir.Open(at + "/m")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before, err := modeldir.Open(at + "/m@2")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if m.StartedFrom != (modeldir.Origin{Generation: "gen-000002", Identity: before.ID}) || before.ID == "" || m.Night != "" || m.Day != 3 {
		t.Errorf("%+v", m.Manifest)
	}
	// A run that fails leaves the chain as it was.
	if _, err := c.night("", "data.columns[0]={name: region, role: label}", "data.columns[7]={name: label}"); err == nil {
		t.Fatal("a run of bad rows succeeds")
	}
	c.starts("", at+"/m@3")
	// Going back counts.
	if _, err := modeldir.Rollback(at+"/m", 0); err != nil {
		t.Fatal(err)
	}
	c.starts("", at+"/m@3")
}

// TestLatestInOneDirectory checks that nights may be missing, and that a night that is trained
// again starts from the same model as before.
func TestLatestInOneDirectory(t *testing.T) {
	c, at := newChain(t, "AT/m", `name="n-{{date}}"`, "output.keep_generations=3")
	first := c.starts("2026-11-17", "")
	again := c.starts("2026-11-17", "")
	if first.Digest != again.Digest {
		t.Error("the first night, trained again, gives another model")
	}
	night := c.starts("2026-11-18", at+"/m@2")
	c.said("night=2026-11-17")
	if strings.Contains(c.log.String(), "missing") {
		t.Errorf("nothing is missing: %s", c.log.String())
	}
	for range 3 {
		if s := c.starts("2026-11-18", at+"/m@2"); s.Digest != night.Digest {
			t.Error("the night, trained again, gives another model")
		}
	}
	c.starts("2026-11-22", at+"/m@6")
	c.said("night=2026-11-18", "missing_nights=3")
	// Other data of the same night follow.
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	c.starts("2026-11-22", at+"/m@7", "data.train=["+log+"/train-1.tsv.gz]")
	// An earlier night starts from a model before it, not from a later one.
	c.starts("2026-11-20", at+"/m@6")
	if n := strings.Count(c.log.String(), "the published model is of a later night than this run"); n != 1 {
		t.Errorf("the log says %d times that a later night is published:\n%s", n, c.log.String())
	}
	// One from which nothing is left says so, and makes no model.
	_, err = c.night("2026-11-10")
	if err == nil || errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "gen-000006 is of the night 2026-11-18, so the job, which is of 2026-11-10, cannot start from it") {
		t.Errorf("an earlier night: %v", err)
	}
	if s := c.starts("2026-11-21", at+"/m@9"); s.Steps != 4*first.Steps {
		t.Errorf("%d steps, want those of 4 nights", s.Steps)
	}
}

// TestLatestByHour checks that hours follow one another, and are trained again, as nights are.
func TestLatestByHour(t *testing.T) {
	c, at := newChain(t, "AT/m", "output.keep_generations=4")
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(log, at+"/logs"); err != nil {
		t.Fatal(err)
	}
	for hour, file := range map[string]string{"04": "train-0.tsv", "05": "train-0.tsv", "06": "train-0.tsv"} {
		if err := os.Symlink(filepath.Join(log, file), filepath.Join(at, "2026-11-20-"+hour+".tsv")); err != nil {
			t.Fatal(err)
		}
	}
	c.set = append(c.set, `data.train=["`+at+`/{{date \"2006-01-02-15\"}}.tsv"]`)
	c.starts("2026-11-20T04", "")
	c.starts("2026-11-20T05", at+"/m@1")
	c.starts("2026-11-20T06", at+"/m@2")
	c.starts("2026-11-20T05", at+"/m@1")
	c.starts("2026-11-20T06", at+"/m@4")

	// Where the data are always in the same place, the hour tells.
	c, at = newChain(t, "AT/m")
	c.starts("2026-11-20T04", "")
	c.starts("2026-11-20T05", at+"/m@1")
	c.starts("2026-11-20T05", at+"/m@1")
	c.starts("2026-11-21T04", at+"/m@3")
}

// TestLatestInDirectoriesByDate checks that the newest model is found in whichever directory the
// template names, however old it is, and that directories without a model are skipped.
func TestLatestInDirectoriesByDate(t *testing.T) {
	c, at := newChain(t, `AT/{{date \"2006/01\"}}/{{date \"02\"}}/model`)
	first := c.starts("2019-12-30", "")
	c.starts("2026-11-17", at+"/2019/12/30/model@1")
	c.starts("2026-11-18", at+"/2026/11/17/model@1")
	// The 19th fails, the 20th has an empty directory, and there is a file in the way.
	if _, err := c.night("2026-11-19", "data.train=["+at+"/nosuch]"); err == nil {
		t.Fatal("a night without data succeeds")
	}
	if err := errors.Join(os.MkdirAll(at+"/2026/11/20/model", 0o755), os.WriteFile(at+"/2026/11/21", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	s := c.starts("2026-11-22", at+"/2026/11/18/model@1")
	c.said("missing_nights=3")
	if again := c.starts("2026-11-22", at+"/2026/11/18/model@1"); again.Digest != s.Digest || s.Steps != 4*first.Steps {
		t.Errorf("trained again: %s, want %s; %d steps", again.Digest, s.Digest, s.Steps)
	}
	c.starts("2026-11-19", at+"/2026/11/18/model@1")
	c.starts("2026-11-20", at+"/2026/11/19/model@1")
	// A damaged model is not passed over silently.
	if err := os.WriteFile(at+"/2026/11/22/model/MODEL.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.night("2026-11-23"); err == nil || !strings.Contains(err.Error(), at+"/2026/11/22/model") || !strings.Contains(err.Error(), "--to") {
		t.Errorf("a damaged model: %v", err)
	}
}

// TestLatestInOtherDirectories checks directories that have several nights, and directories that
// are used in turn.
func TestLatestInOtherDirectories(t *testing.T) {
	c, at := newChain(t, `AT/{{date \"2006-01\"}}`)
	c.starts("2026-10-30", "")
	c.starts("2026-10-31", at+"/2026-10@1")
	c.starts("2026-11-01", at+"/2026-10@2")
	c.starts("2026-11-02", at+"/2026-11@1")
	c.starts("2026-11-01", at+"/2026-10@2")

	// Of a night that has another one before it in its directory, the model to start from is not in
	// the directory before.
	c.starts("2026-11-02", at+"/2026-11@3")
	c.starts("2026-11-03", at+"/2026-11@4")
	c.starts("2026-11-04", at+"/2026-11@5")
	if _, err := c.night("2026-11-03"); err == nil || errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "2026-11/gen-000004, from which it was made, no longer exists") {
		t.Errorf("the model of the night before is gone: %v; %s", err, c.log.String())
	}
	c.starts("2026-11-01", at+"/2026-10@2")

	c, at = newChain(t, `AT/{{date \"Mon\"}}`)
	c.starts("2026-11-14", "") // a Saturday
	c.starts("2026-11-15", at+"/Sat@1")
	c.starts("2026-11-16", at+"/Sun@1")
	c.starts("2026-11-21", at+"/Mon@1") // Saturday's and Sunday's models are older
	c.starts("2026-11-23", at+"/Sat@2") // the Sunday between is missing
	c.starts("2026-11-23", at+"/Sat@2")
}

// TestLatestWhereNothingIsLeft checks that a night can only be trained again if the model from
// which it started exists, or if another one is named.
func TestLatestWhereNothingIsLeft(t *testing.T) {
	c, at := newChain(t, "AT/m", "output.keep_generations=1")
	c.starts("2026-11-17", "")
	c.starts("2026-11-18", at+"/m@1")
	if _, err := os.Stat(at + "/m/gen-000001"); !errors.Is(err, fs.ErrNotExist) || strings.Contains(c.log.String(), "could not be deleted") {
		t.Errorf("the model from which the night has started is still there: %v\n%s", err, c.log.String())
	}
	before := testjobs.Digest(t, c.job(""))
	if _, err := c.night("2026-11-18", "seed=8"); err == nil || !strings.Contains(err.Error(), "gen-000001, from which it was made, no longer exists") {
		t.Errorf("the model before is gone: %v", err)
	}
	if testjobs.Digest(t, c.job("")) != before {
		t.Error("the model has changed")
	}
	if _, err := c.night("2026-11-18", `training.warm_start=""`); err != nil {
		t.Error(err)
	}
	c.starts("2026-11-19", at+"/m@3")
	if _, err := c.night("2026-11-19", "training.warm_start="+at+"/m@4"); err != nil { // whoever names it gets it
		t.Error(err)
	}
	if _, err := c.night("2026-11-19", "training.warm_start="+at+"/m@4"); err == nil || !strings.Contains(err.Error(), "it has no generation 4; it has 5 (published)") {
		t.Errorf("a generation that is gone: %v", err)
	}
	// Without a manifest at the top nobody knows which generation is the model.
	if err := os.Remove(at + "/m/MODEL.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.night("2026-11-20"); err == nil || !strings.Contains(err.Error(), "aibox rollback "+at+"/m --to 5") {
		t.Errorf("no model is published: %v", err)
	}
	if _, err := modeldir.Rollback(at+"/m", 5); err != nil {
		t.Fatal(err)
	}
	c.starts("2026-11-20", at+"/m@5")
}

// TestFewerModelsAreKept checks that a run first deletes the models that output.keep_generations no
// longer allows, since there may be too little space to do that only at its end, but not the model
// from which it starts.
func TestFewerModelsAreKept(t *testing.T) {
	c, at := newChain(t, "AT/m", "output.keep_generations=5")
	log, err := os.ReadFile(c.job("").Data.Train[0])
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(at, "log.tsv")
	c.set = append(c.set, "data.train=["+own+"]")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(own, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(log)
	for day := 15; day < 20; day++ {
		if _, err := c.night(fmt.Sprint("2026-11-", day)); err != nil {
			t.Fatal(err)
		}
	}
	header, _, _ := strings.Cut(string(log), "\n")
	write([]byte(header + strings.Repeat("\nno row", 10)))
	for _, x := range []struct {
		date, keep string
		want       []int
	}{
		{"2026-11-20", "5", []int{5, 4, 3, 2, 1}},
		{"2026-11-20", "4", []int{5, 4, 3, 2}},
		{"2026-11-18", "2", []int{5, 4, 3}}, // this night starts from the third model
		{"2026-11-20", "2", []int{5, 4}},
	} {
		if _, err := c.night(x.date, "output.keep_generations="+x.keep); errkind.Of(t.Context(), err) != errkind.Data {
			t.Fatalf("%v: %v", x, err)
		}
		all, err := modeldir.Generations(at + "/m")
		var got []int
		for _, g := range all {
			got = append(got, g.Number)
		}
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("%v: there are %v, %v", x, got, err)
		}
	}
	write(log)
	c.starts("2026-11-20", at+"/m@5", "output.keep_generations=2")
}

// TestLatestWhereTheClockIsWrong checks that a job that takes its date from a clock that was set
// back does not publish a model of an earlier night, and in particular no new model, while an
// explicit date is accepted.
func TestLatestWhereTheClockIsWrong(t *testing.T) {
	c, at := newChain(t, "AT/m", `name="n-{{date}}"`, "output.keep_generations=3")
	c.starts("2026-11-17", "")
	c.starts("2026-11-18", at+"/m@1")
	onClock := func(date string) error {
		j := c.job(date)
		j.DateGiven = false // as if it were the date on the clock
		_, err := Train(t.Context(), j, quiet)
		return err
	}
	for _, date := range []string{"2026-11-10", "2026-11-17"} {
		if err := onClock(date); errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "gen-000002 is of the night 2026-11-18") || !strings.Contains(err.Error(), "--date "+date) {
			t.Errorf("the clock says %s: %v", date, err)
		}
	}
	if all, err := generations.List(at + "/m"); err != nil || len(all) != 2 || all[0].State != generations.Published {
		t.Errorf("there are %+v, %v", all, err)
	}
	if err := onClock("2026-11-18"); err != nil { // again
		t.Error(err)
	}
	if err := onClock("2026-11-19"); err != nil {
		t.Error(err)
	}
	c.starts("2026-11-17", "")
}

// TestLatestIsNoDirectory checks that a directory called latest has to be written as ./latest.
func TestLatestIsNoDirectory(t *testing.T) {
	c, at := newChain(t, "AT/m")
	t.Chdir(at)
	c.starts("", "", "output.model_dir=latest")
	c.starts("", "latest@1", "output.model_dir=latest")
	if s, err := c.night("", "training.warm_start=./latest"); err != nil || s.WarmStart != "./latest" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestLatestMeanwhile checks that a run does not train if another one has committed a newer model
// after it had chosen its own.
func TestLatestMeanwhile(t *testing.T) {
	c, _ := newChain(t, "AT/m")
	c.starts("", "")
	j := c.job("")
	m := start.Model{Options: start.Options{Job: j, Log: quiet.Logger}, Chain: chain.New(j, quiet.Logger)}
	if err := m.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Previous.Close()
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	if _, err := c.night(""); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); !errors.Is(err, modeldir.ErrLocked) {
		t.Errorf("another run has committed: %v", err)
	}
}

// TestNightMovedAway checks that if each night has a directory, rollback says from which model a
// night was made, and the next night starts from that model once the directory of the night is
// moved away.
func TestNightMovedAway(t *testing.T) {
	c, at := newChain(t, "AT/{{date}}")
	c.starts("2026-11-20", "")
	if _, err := modeldir.Rollback(at+"/2026-11-20", 0); err == nil || strings.Contains(err.Error(), "moved away") {
		t.Error(err)
	}
	c.starts("2026-11-21", at+"/2026-11-20@1")
	if _, err := modeldir.Rollback(at+"/2026-11-21", 0); err == nil || !strings.Contains(err.Error(), "the current one was made from "+at+"/2026-11-20@1: if "+at+"/2026-11-21 is moved away") {
		t.Error(err)
	}
	if err := os.Rename(at+"/2026-11-21", at+"/bad"); err != nil {
		t.Fatal(err)
	}
	c.starts("2026-11-22", at+"/2026-11-20@1")
}
