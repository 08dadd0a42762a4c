package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/refill"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// Here random sequences of what can be done with a model directory, of kills at any operation
// on disk and of losses of disks and machines are held against plain maps: which model each
// generation should be. A model is named by the nights from which it was made, such as
// "1.2.4", and what it should be is found by training these nights in memory, one after the
// other, in directories that nothing else happens to. A model that says that lost rows have
// gone back gets a name of its own, such as "1.2~7", and is what it was when it was made.

var nightsJob = strings.Replace(testjobs.Text, "KIND", "fm", 1)

// nights is one such sequence.
type nights struct {
	t    *testing.T
	rng  *rand.Rand
	root string
	log  string // the training data

	digests map[string]string // of models by their names, undisturbed
	models  map[string]string // their names, by Manifest.Identity
	parents map[string]string // identities of what they were made from, by theirs; "": a new model
	night   int               // the last one that was begun

	machines int
	at       string   // the machine that is used, a directory
	storage  []string // sparse_table of it
	dirs     []string // of it
	retained int      // output.remote_keep_generations

	broken    map[string]bool  // generations of it that have lost a directory of their table, by keyOf
	began     map[int][]string // by night: the models from which processes on it may have started
	lost      bool             // so may the run that was killed last have done
	partially bool             // it has gone on since with recovery.mode partial
	inexact   int              // models that say that rows have gone back

	did []string // for messages
}

// TestNightsModel runs random sequences.
func TestNightsModel(t *testing.T) {
	for n := range tabletest.Kills(t, 4, 1) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			log, err := testjobs.Log()
			if err != nil {
				t.Fatal(err)
			}
			rng := testseed.Rand(t)
			w := &nights{t: t, rng: rng, root: t.TempDir(), log: log, digests: make(map[string]string), models: make(map[string]string), parents: make(map[string]string), retained: 1 + rng.IntN(3)}
			defer func() { t.Logf("what was done:\n%s", strings.Join(w.did, "\n")) }()
			w.newMachine()
			for _, remote := range []string{"remote", "snapshots"} { // a night does not begin where they may be unmounted
				if err := os.MkdirAll(filepath.Join(w.root, remote), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for range 14 {
				w.step()
				w.check()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// newMachine replaces the machine by one that has nothing but the remote directories.
func (w *nights) newMachine() {
	w.machines++
	w.at = filepath.Join(w.root, fmt.Sprint("machine", w.machines))
	w.broken, w.began, w.lost, w.partially = make(map[string]bool), make(map[int][]string), false, false
	w.moveTable()
}

// replaceMachine puts a machine with nothing on it into the place of the one that is used.
func (w *nights) replaceMachine() {
	w.t.Helper()
	w.did = append(w.did, "replaced "+w.at)
	w.broken = make(map[string]bool)
	if err := os.RemoveAll(w.at); err != nil {
		w.t.Fatal(err)
	}
}

// keyOf tells a generation of this machine from all others, also from one with the same model.
func keyOf(g *modeldir.Generation) string { return fmt.Sprint(g.Number, " ", g.Manifest.Identity()) }

// loseDirectory loses one of the disks that tables of this machine are on, if there is one. It
// is a directory of the table of all generations that have files there.
func (w *nights) loseDirectory() {
	w.t.Helper()
	tables, err := filepath.Glob(filepath.Join(w.at, "[abc]", "*-gen-*"))
	if err != nil || len(tables) == 0 {
		return
	}
	entry := filepath.Dir(one(w.rng, tables...))
	way := one(w.rng, "not mounted", "new disk", "emptied")
	w.did = append(w.did, fmt.Sprintf("%s is lost, %s", entry, way))
	w.lost = true
	list, _ := modeldir.Generations(w.dir()) // without a model, only a run that was killed loses it
	for _, table := range tables {
		if filepath.Dir(table) != entry {
			continue
		}
		for i := range list {
			if strings.Contains(filepath.Base(table), "-"+list[i].Name+"-") {
				w.broken[keyOf(&list[i])] = true
			}
		}
		if err := waysToLose[way](w.t, entry, table); err != nil {
			w.t.Fatal(err)
		}
	}
}

// moveTable draws where the next tables are.
func (w *nights) moveTable() {
	w.dirs = nil
	for i := range one(w.rng, 0, 1, 2, 2, 3) {
		w.dirs = append(w.dirs, filepath.Join(w.at, string(rune('a'+i))))
	}
	w.storage = []string{"sparse_table.memory_bytes=64MiB"}
	if w.dirs != nil || w.rng.IntN(2) == 0 {
		w.storage = onSSD("sparse_table.dirs=[" + strings.Join(w.dirs, ", ") + "]")
	}
}

func (w *nights) dir() string    { return filepath.Join(w.at, "model") }
func (w *nights) remote() string { return "file://" + filepath.Join(w.root, "remote") }

// step does one thing.
func (w *nights) step() {
	switch n := w.rng.IntN(20); {
	case n < 10:
		w.train()
	case n < 12:
		w.rollback()
	case n < 14:
		w.publish()
	case n < 17:
		w.restoreElsewhere()
	case n < 18:
		w.newMachine()
		w.did = append(w.did, "new machine "+w.at)
	case n < 19:
		w.loseDirectory()
	default:
		w.moveTable()
	}
}

// jobOf is a night's job, whose data and expiry of rows depend on the night.
func (w *nights) jobOf(night int, dir string, more ...string) nightStep {
	file := []string{"train-0.tsv", "train-1.tsv.gz"}[night%2]
	return nightStep{
		Do: "train", Date: fmt.Sprintf("2026-11-%02d", night), Model: dir,
		Set: append([]string{
			"data.train=[" + filepath.Join(w.log, file) + "]", "output.model_dir=" + dir, "model.embedding_dim=4", "timezone=UTC",
			[]string{"sparse_table.expiry.min_show=2", "sparse_table.expiry.unseen_days=1", "sparse_table.expiry.min_show=0"}[night%3],
		}, more...),
	}
}

// undisturbed is where a model is that nothing has happened to.
func (w *nights) undisturbed(name string) string { return filepath.Join(w.root, "undisturbed", name) }

// want is the digest of the model with a name.
func (w *nights) want(name string) string {
	w.t.Helper()
	if d, ok := w.digests[name]; ok {
		return d
	}
	set := []string{"sparse_table.memory_bytes=64MiB"}
	if from := parentOf(name); from != "" {
		w.want(from)
		set = append(set, "training.warm_start="+w.undisturbed(from))
	}
	s := w.jobOf(nightOfName(name), w.undisturbed(name), set...)
	if err := s.run(w.t.Context(), nil, quiet.Logger); err != nil {
		w.t.Fatalf("undisturbed night %s: %v", name, err)
	}
	in, err := inference.Inspect(w.t.Context(), w.undisturbed(name), false, testjobs.Quiet)
	if err != nil {
		w.t.Fatal(err)
	}
	w.digests[name] = in.Digest
	return in.Digest
}

// parentOf is the name of the model from which one was made; "": it began as a new one.
func parentOf(name string) string {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)]
}

func nightOfName(name string) int {
	last, _, _ := strings.Cut(name[strings.LastIndexByte(name, '.')+1:], "~")
	n, _ := strconv.Atoi(last)
	return n
}

// local are the names of the models on this machine by their generations, and the generation
// that is published.
func (w *nights) local() (all map[int]string, published int) {
	w.t.Helper()
	all = make(map[int]string)
	list, err := modeldir.Generations(w.dir())
	if err != nil {
		return all, 0
	}
	for _, g := range list {
		name, ok := w.models[g.Manifest.Identity()]
		if !ok || g.Fault != nil {
			w.t.Errorf("generation %d is not known: %+v", g.Number, g)
		}
		all[g.Number] = name
		if g.Published {
			published = g.Number
		}
	}
	return all, published
}

// open opens a remote directory.
func (w *nights) open(uri string) *remote.Directory {
	w.t.Helper()
	sources := jobsource.New(new(configs.Job), quiet.Logger)
	w.t.Cleanup(func() { _ = sources.Close() })
	d, err := transfer.Open(sources, uri, 0, "", quiet.Logger)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// there are the generations of the remote directory, the newest first.
func (w *nights) there() []*remote.Manifest {
	w.t.Helper()
	all, faults, err := w.open(w.remote()).Generations(w.t.Context())
	if err != nil || len(faults) > 0 {
		w.t.Fatal(err, faults)
	}
	return all
}

// starts are the names of the models from which a night may start, "" for a new one. There are
// none if it cannot start, since the model from which it started before is gone. If a published model
// has lost a directory and is not in the remote directory, the newest other one there is restored;
// if there is none, or if it is an earlier model, fails is true, and the night may end with an error.
func (w *nights) starts(night int) (names []string, fails bool) {
	w.t.Helper()
	elsewhere := func() string {
		for _, m := range w.there() {
			if name := w.models[m.Identity]; nightOfName(name) < night {
				return name
			}
		}
		return ""
	}
	all, published := w.local()
	if len(all) == 0 {
		return []string{elsewhere()}, false
	}
	var here, there []string // identities
	id := ""
	list, _ := modeldir.Generations(w.dir()) // local has read it
	for _, g := range list {
		here = append(here, g.Manifest.Identity())
		if g.Published {
			id = g.Manifest.Identity()
		}
	}
	for _, m := range w.there() {
		there = append(there, m.Identity)
	}
	for id != "" && nightOfName(w.models[id]) >= night {
		if id = w.parents[id]; id != "" && !slices.Contains(here, id) {
			if !slices.Contains(there, id) {
				return nil, false
			}
			here = there // the chain does not come back to this machine
		}
	}
	name := w.models[id]
	names = []string{name}
	if name != "" && slices.Contains(w.brokenNames(), name) && !slices.Contains(there, id) {
		other := elsewhere()
		if fails = other == "" || name != all[published]; !fails {
			names = append(names, other)
		}
	}
	return names, fails
}

// brokenNames are the names of the models that have lost a directory of their table.
func (w *nights) brokenNames() (names []string) {
	w.t.Helper()
	list, _ := modeldir.Generations(w.dir()) // without a model, there are none
	for i := range list {
		if w.broken[keyOf(&list[i])] {
			names = append(names, w.models[list[i].Manifest.Identity()])
		}
	}
	return names
}

// drawn are settings of a night that its model does not depend on.
type drawn struct {
	set       []string
	keep      int      // output.keep_generations
	snapshots string   // snapshots.remote
	partial   []string // more, so that a loss makes it another model; nil: recovery.mode is full
}

func (w *nights) draw() (d drawn) {
	d.keep = 1 + w.rng.IntN(3)
	d.set = append([]string{
		"training.warm_start=latest", "output.remote=" + w.remote(), "snapshots.every=1 pass",
		fmt.Sprintf("output.keep_generations=%d", d.keep), fmt.Sprintf("output.remote_keep_generations=%d", w.retained),
	}, w.storage...)
	if d.snapshots = one(w.rng, "", w.remote(), w.remote(), "file://"+filepath.Join(w.root, "snapshots")); d.snapshots == "" {
		return d
	}
	d.set = append(d.set, "snapshots.remote="+d.snapshots, "snapshots.remote_every="+one(w.rng, "auto", "1 snapshot", "4 snapshots"))
	if len(w.dirs) > 0 && w.rng.IntN(3) > 0 {
		d.partial = []string{"recovery.mode=partial", "recovery.max_lost_samples=" + one(w.rng, "1", "1", "1e-9")}
		if kind := one(w.rng, configs.PriorityNone, "mfu", "ssu", "scar"); kind != configs.PriorityNone {
			d.partial = append(d.partial, "snapshots.priority="+kind, "snapshots.priority_fraction=0.25")
		}
	}
	return d
}

// train trains a night, mostly the next one, and sometimes that of the published model again.
func (w *nights) train() {
	w.t.Helper()
	night := w.night + 1
	if all, published := w.local(); published != 0 && w.rng.IntN(5) == 0 {
		night = nightOfName(all[published])
	}
	d := w.draw()
	s := w.jobOf(night, w.dir(), append(slices.Clip(d.set), d.partial...)...)
	from, fails := w.starts(night)
	for len(from) > 0 && !fails && w.rng.IntN(4) > 0 {
		w.night = max(w.night, night)
		w.began[night] = append(w.began[night], from...)
		w.partially = w.partially || w.lost && d.partial != nil
		s.Fresh, s.Waits = w.rng.IntN(10) == 0, w.rng.IntN(3) > 0
		at := 1 + w.rng.IntN(1<<(8+w.rng.IntN(4)))
		done, log := s.dies(w.t, at)
		w.did = append(w.did, fmt.Sprintf("night %d from %q is killed at operation %d, fresh %v, done %v, resumed %v", night, from, at, s.Fresh, done, resumed(log)))
		if strings.Contains(log, "recovery.max_lost_samples allows") && !w.partially {
			w.t.Errorf("night %d from %q says that too much is lost\n%s", night, from, log)
		}
		if w.learn(night, log) || done {
			return
		}
		switch w.rng.IntN(7) {
		case 0:
			return // what is done next may be something else than to go on
		case 1, 2, 3:
			w.loseDirectory()
		case 4:
			w.replaceMachine()
		}
		from, fails = w.starts(night)
	}
	if len(from) == 0 {
		return
	}
	w.night = max(w.night, night)
	w.began[night] = append(w.began[night], from...)
	w.partially = w.partially || w.lost && d.partial != nil
	s.Fresh, s.Waits = false, w.rng.IntN(2) == 0
	before, _ := w.local()
	var log bytes.Buffer
	err := s.run(w.t.Context(), nil, slog.New(slog.NewTextHandler(&log, nil)))
	if most := new(refill.LostSamplesError); errors.As(err, &most) && w.partially {
		w.did = append(w.did, "too much would be lost")
		s = w.jobOf(night, w.dir(), d.set...)
		err = s.run(w.t.Context(), nil, slog.New(slog.NewTextHandler(&log, nil)))
	}
	w.did = append(w.did, fmt.Sprintf("night %d from %q on %v, resumed %v: %v", night, from, w.storage[0], resumed(log.String()), err))
	if lost := new(modeldir.LostError); fails && errors.As(err, &lost) {
		return
	}
	if err != nil {
		w.t.Fatalf("night %d from %q: %v\n%s", night, from, err, &log)
	}
	if !w.learn(night, log.String()) {
		w.t.Fatalf("night %d from %q has made no model\n%s", night, from, &log)
	}
	// The published one is the new one, here and there; the one before is kept.
	all, published := w.local()
	name := all[published]
	if nightOfName(name) != night || len(all) > d.keep {
		w.t.Errorf("%d of %v is published, want night %d and no more than %d", published, all, night, d.keep)
	}
	names := slices.Collect(maps.Values(all))
	for _, b := range before {
		if b == parentOf(name) && d.keep > 1 && !slices.Contains(names, b) {
			w.t.Errorf("%s is not among %v, which are to be %d", b, all, d.keep)
		}
	}
	if newest := w.there()[0]; w.models[newest.Identity] != name || len(w.there()) > w.retained {
		w.t.Errorf("the newest of %d models in the remote directory is %s, want %s of at most %d", len(w.there()), w.models[newest.Identity], name, w.retained)
	}
	w.noSnapshots(d.snapshots)
}

// noSnapshots fails if there are snapshots, or rows that were saved by priority, of this machine.
func (w *nights) noSnapshots(uri string) {
	w.t.Helper()
	if uri == "" {
		return
	}
	d := w.open(uri)
	snapshots, _, err := d.Snapshots(w.t.Context())
	saves, _, err2 := d.PrioritySaves(w.t.Context())
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range append(snapshots, saves...) {
		if strings.HasSuffix(m.Owner, ":"+disk.RealDir(w.dir())) {
			w.t.Errorf("number %d of %s, of step %d, is still there though its run has made its model", m.Number, uri, m.Step)
		}
	}
}

// resumed reports whether the process with a log has gone on from a snapshot.
func resumed(log string) bool { return strings.Contains(log, "training resumes from the snapshot") }

// learn gives the published model its name, if it is new, and reports whether it was. A
// process may also have restored models from the remote directory, which are known.
func (w *nights) learn(night int, log string) bool {
	w.t.Helper()
	list, err := modeldir.Generations(w.dir())
	if err != nil {
		return false
	}
	for i := range list {
		g, m := &list[i], &list[i].Manifest
		if _, known := w.models[m.Identity()]; known {
			continue
		}
		if !g.Published {
			w.t.Errorf("generation %d is new and not published\n%s", g.Number, log)
		}
		parent, ok := "", m.StartedFrom == (modeldir.Origin{})
		if !ok {
			parent, ok = w.models[m.StartedFrom.Identity]
		}
		// A run goes on from a snapshot elsewhere, also where the model with which it began is gone.
		from := w.began[night]
		if !ok || !slices.Contains(from, parent) {
			w.t.Errorf("night %d says that it has started from %q (%+v), want one of %q\n%s", night, parent, m.StartedFrom, from, log)
		}
		name := strings.TrimPrefix(fmt.Sprintf("%s.%d", parent, night), ".")
		p := m.PartialRecovery
		if p.Inherited != strings.Contains(parent, "~") || p.Recoveries == 0 && p.LostSamples != 0 {
			w.t.Errorf("night %d from %q says %+v", night, parent, p)
		}
		if p.Recoveries > 0 {
			name = w.otherModel(name, g, log)
		}
		w.models[m.Identity()], w.parents[m.Identity()] = name, m.StartedFrom.Identity
		w.lost, w.partially = false, false
		return true
	}
	return false
}

// otherModel checks what a model says of lost rows that have gone back, and keeps it as the one
// that it should be from now on. It returns its name.
func (w *nights) otherModel(name string, g *modeldir.Generation, log string) string {
	w.t.Helper()
	var s report.Summary
	data, err := os.ReadFile(modeldir.ReportOf(w.dir(), g.Name, report.SummaryName))
	if err = errors.Join(err, json.Unmarshal(data, &s)); err != nil {
		w.t.Fatal(err)
	}
	want := modeldir.PartialRecovery{LostSamples: s.LostSamples, Inherited: g.Manifest.PartialRecovery.Inherited}
	for _, r := range s.Recoveries {
		if r.Mode == configs.RecoveryPartial && !r.Exact() { // others change nothing
			want.Recoveries++
			want.RowsAnew += r.RowsLost - r.RowsRestored
		}
	}
	if got := g.Manifest.PartialRecovery; !w.partially || got != want || got.LostSamples < 0 || got.LostSamples > 1 {
		w.t.Errorf("night %s says %+v, want %+v, where rows may have gone back: %v\n%s", name, got, want, w.partially, log)
	}
	w.inexact++
	name = fmt.Sprintf("%s~%d", name, w.inexact)
	w.did = append(w.did, fmt.Sprintf("which is %s: %+v", name, want))
	model := modeldir.JoinName(w.dir(), g.Number)
	in, err := inference.Inspect(w.t.Context(), model, true, testjobs.Quiet)
	if err != nil || len(in.Faults) > 0 {
		w.t.Fatal(err, in)
	}
	w.digests[name] = in.Digest
	copied := "file://" + w.undisturbed(name) + "-copied"
	if err := os.MkdirAll(w.undisturbed(""), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if _, err := transfer.Publish(w.t.Context(), transfer.PublishOptions{Model: model, Remote: copied, Options: quiet.transfer()}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := transfer.Restore(w.t.Context(), transfer.RestoreOptions{From: copied, To: w.undisturbed(name), Options: quiet.transfer()}); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// rollback makes another generation the model.
func (w *nights) rollback() {
	w.t.Helper()
	list, _ := modeldir.Generations(w.dir()) // without a model, there is nothing to choose from
	var numbers []int
	for i := range list {
		if !w.broken[keyOf(&list[i])] {
			numbers = append(numbers, list[i].Number)
		}
	}
	if len(numbers) == 0 || len(modeldir.Arriving(w.dir())) > 0 { // the latter cannot be published
		return
	}
	s := nightStep{Do: "rollback", Model: w.dir(), To: one(w.rng, numbers...)}
	w.crashed(&s)
	w.do(&s)
	if now, published := w.local(); published != s.To || len(now) != len(list) {
		w.t.Errorf("%d of %v is published", published, now)
	}
	w.newest()
}

// publish publishes the model.
func (w *nights) publish() {
	w.t.Helper()
	all, published := w.local()
	if len(all) == 0 || slices.Contains(w.brokenNames(), all[published]) || len(modeldir.Arriving(w.dir())) > 0 {
		return
	}
	s := nightStep{Do: "publish", Model: w.dir(), Remote: w.remote()}
	w.crashed(&s)
	w.do(&s)
	w.newest()
}

// newest fails unless this machine's model is the newest one in the remote directory, or is
// there and another machine has published since.
func (w *nights) newest() {
	w.t.Helper()
	all, published := w.local()
	there := w.there()
	i := slices.IndexFunc(there, func(m *remote.Manifest) bool { return w.models[m.Identity] == all[published] })
	if i < 0 || i > 0 && strings.HasSuffix(there[0].Owner, ":"+disk.RealDir(w.dir())) {
		w.t.Errorf("the model is %s; it is number %d in the remote directory", all[published], i)
	}
}

// crashed lets the step be killed some times.
func (w *nights) crashed(s *nightStep) {
	w.t.Helper()
	for w.rng.IntN(3) == 0 {
		at := 1 + w.rng.IntN(1<<(1+w.rng.IntN(7)))
		done, _ := s.dies(w.t, at)
		w.did = append(w.did, fmt.Sprintf("%s is killed at operation %d, done %v", s.Do, at, done))
		if _, err := modeldir.Generations(s.Model); err == nil && s.Do == "restore" {
			break
		}
	}
}

// do carries the step out.
func (w *nights) do(s *nightStep) {
	w.t.Helper()
	w.did = append(w.did, fmt.Sprintf("%s %+v", s.Do, *s))
	var log bytes.Buffer
	if err := s.run(w.t.Context(), nil, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		w.t.Fatalf("%s: %v\n%s", s.Do, err, &log)
	}
}

// restoreElsewhere restores one of the generations to directories that are drawn.
func (w *nights) restoreElsewhere() {
	w.t.Helper()
	there := w.there()
	if len(there) == 0 {
		return
	}
	m := one(w.rng, there...)
	at := filepath.Join(w.root, "elsewhere")
	s := nightStep{Do: "restore", From: fmt.Sprintf("%s@%d", w.remote(), m.Number), Model: filepath.Join(at, "model")}
	for i := range w.rng.IntN(4) {
		s.Dirs = append(s.Dirs, filepath.Join(at, string(rune('a'+i))))
	}
	w.crashed(&s)
	if _, err := modeldir.Generations(s.Model); err != nil { // else, it was restored before it was killed
		w.do(&s)
	}
	w.same(s.Model, m.Identity, true)
	if err := os.RemoveAll(at); err != nil {
		w.t.Fatal(err)
	}
}

// same fails unless a model is what it should be.
func (w *nights) same(model, identity string, whole bool) {
	w.t.Helper()
	name, ok := w.models[identity]
	if !ok {
		w.t.Fatalf("%s is no model that was trained", model)
	}
	in, err := inference.Inspect(w.t.Context(), model, true, testjobs.Quiet)
	if err != nil {
		w.t.Fatalf("%s, which is %s: %v", model, name, err)
	}
	if want := w.want(name); in.Digest != want || whole && len(in.Faults) > 0 {
		w.t.Errorf("%s is %s with the digest %s, want %s; faults %v", model, name, in.Digest, want, in.Faults)
	}
}

// check verifies all generations of this machine, and knows those of the remote directory.
func (w *nights) check() {
	w.t.Helper()
	list, err := modeldir.Generations(w.dir())
	if err == nil && !slices.ContainsFunc(list, func(g modeldir.Generation) bool { return g.Published }) {
		w.t.Error("no generation is published")
	}
	for i := range list {
		g := &list[i]
		name := modeldir.JoinName(w.dir(), g.Number)
		_, err := inference.Inspect(w.t.Context(), name, true, testjobs.Quiet)
		switch {
		case errors.Is(err, sparsetable.ErrArriving): // the night that restored it was killed
		case !w.broken[keyOf(g)], err == nil: // or the directory that it has lost had no rows but those kept for speed
			w.same(name, g.Manifest.Identity(), !w.broken[keyOf(g)])
		case errkind.Of(w.t.Context(), err) != errkind.IO:
			w.t.Errorf("%s has lost a directory of its table, and its inspection ends with %v", name, err)
		}
	}
	numbers := make(map[int]bool)
	for _, m := range w.there() {
		if w.models[m.Identity] == "" || numbers[m.Number] {
			w.t.Errorf("generation %d of the remote directory is not known, or there twice", m.Number)
		}
		numbers[m.Number] = true
	}
}
