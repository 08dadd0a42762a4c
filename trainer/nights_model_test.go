package trainer

import (
	"bytes"
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
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// Here random sequences of what can be done with a model directory, and of kills at any
// operation on disk, are held against plain maps: which model each generation should be. A
// model is named by the nights from which it was made, such as "1.2.4", and what it should be
// is found by training these nights in memory, one after the other, in directories that
// nothing else happens to.

var nightsJob = strings.Replace(testJob, "KIND", "fm", 1)

// nights is one such sequence.
type nights struct {
	t    *testing.T
	rng  *rand.Rand
	root string
	log  string // the training data

	digests map[string]string // of models by their names, undisturbed
	models  map[string]string // their names, by Manifest.Identity
	night   int               // the last one that was begun

	machines int
	at       string   // the machine that is used, a directory
	storage  []string // sparse_table of it
	dirs     []string // of it
	retained int      // output.remote_keep_generations

	did []string // for messages
}

// TestNightsModel runs random sequences.
func TestNightsModel(t *testing.T) {
	for n := range tabletest.Kills(t, 4, 1) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			log, err := testLog()
			if err != nil {
				t.Fatal(err)
			}
			rng := testseed.Rand(t)
			w := &nights{t: t, rng: rng, root: t.TempDir(), log: log, digests: make(map[string]string), models: make(map[string]string), retained: 1 + rng.IntN(3)}
			defer func() { t.Logf("what was done:\n%s", strings.Join(w.did, "\n")) }()
			w.newMachine()
			if err := os.MkdirAll(filepath.Join(w.root, "remote"), 0o755); err != nil {
				t.Fatal(err)
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

// newMachine replaces the machine by one that has nothing but the remote directory.
func (w *nights) newMachine() {
	w.machines++
	w.at = filepath.Join(w.root, fmt.Sprint("machine", w.machines))
	w.moveTable()
}

// moveTable draws where the next tables are.
func (w *nights) moveTable() {
	w.dirs = nil
	for i := range w.rng.IntN(4) {
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
	case n < 19:
		w.newMachine()
		w.did = append(w.did, "new machine "+w.at)
	default:
		w.moveTable()
	}
}

// jobOf is a night's job, whose data depend on the night.
func (w *nights) jobOf(night int, dir string, more ...string) nightStep {
	file := []string{"train-0.tsv", "train-1.tsv.gz"}[night%2]
	return nightStep{
		Do: "train", Date: fmt.Sprintf("2026-11-%02d", night), Model: dir,
		Set: append([]string{
			"data.train=[" + filepath.Join(w.log, file) + "]", "output.model_dir=" + dir, "model.embedding_dim=4", "timezone=UTC",
		}, more...),
	}
}

// want is the digest of the model with a name.
func (w *nights) want(name string) string {
	w.t.Helper()
	if d, ok := w.digests[name]; ok {
		return d
	}
	set := []string{"sparse_table.memory_bytes=64MiB"}
	at := func(name string) string { return filepath.Join(w.root, "undisturbed", name) }
	if from := parentOf(name); from != "" {
		w.want(from)
		set = append(set, "training.warm_start="+at(from))
	}
	s := w.jobOf(nightOfName(name), at(name), set...)
	if err := s.run(w.t.Context(), nil, quiet.Logger); err != nil {
		w.t.Fatalf("undisturbed night %s: %v", name, err)
	}
	in, err := Inspect(w.t.Context(), at(name), false, quiet)
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
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
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

// there are the generations of the remote directory, the newest first.
func (w *nights) there() []*remote.Manifest {
	w.t.Helper()
	sources := NewSources(new(configs.Job), quiet.Logger)
	defer sources.Close()
	d, err := openRemote(sources, w.remote(), 0, "", quiet.Logger)
	if err != nil {
		w.t.Fatal(err)
	}
	all, faults, err := d.Generations(w.t.Context())
	if err != nil || len(faults) > 0 {
		w.t.Fatal(err, faults)
	}
	return all
}

// start is the name of the model from which a night starts, "" for a new one. ok is false if
// the night cannot start, since the model from which it started before is gone.
func (w *nights) start(night int) (name string, ok bool) {
	all, published := w.local()
	if len(all) == 0 {
		for _, m := range w.there() {
			if name := w.models[m.Identity]; nightOfName(name) < night {
				return name, true
			}
		}
		return "", true
	}
	kept := make(map[string]bool)
	for _, name := range all {
		kept[name] = true
	}
	name = all[published]
	for name != "" && nightOfName(name) >= night {
		if name = parentOf(name); name != "" && !kept[name] {
			return "", false
		}
	}
	return name, true
}

// train trains a night, mostly the next one, and sometimes that of the published model again.
func (w *nights) train() {
	w.t.Helper()
	night := w.night + 1
	if all, published := w.local(); published != 0 && w.rng.IntN(5) == 0 {
		night = nightOfName(all[published])
	}
	from, ok := w.start(night)
	if !ok {
		return
	}
	w.night = max(w.night, night)
	name := strings.TrimPrefix(fmt.Sprintf("%s.%d", from, night), ".")
	keep := 1 + w.rng.IntN(3)
	s := w.jobOf(night, w.dir(), append([]string{
		"training.warm_start=latest", "output.remote=" + w.remote(), "snapshots.every=1 pass",
		fmt.Sprintf("output.keep_generations=%d", keep), fmt.Sprintf("output.remote_keep_generations=%d", w.retained),
	}, w.storage...)...)
	before, _ := w.local()
	for w.rng.IntN(3) > 0 {
		at := 1 + w.rng.IntN(1<<(7+w.rng.IntN(4)))
		done, log := s.dies(w.t, at)
		w.did = append(w.did, fmt.Sprintf("night %s is killed at operation %d, done %v, resumed %v", name, at, done, resumed(log)))
		committed := w.learn(name, log)
		if committed || done || w.rng.IntN(4) == 0 {
			return // what is done next may be something else than to go on
		}
	}
	var log bytes.Buffer
	if err := s.run(w.t.Context(), nil, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		w.t.Fatalf("night %s: %v\n%s", name, err, &log)
	}
	w.did = append(w.did, fmt.Sprintf("night %s on %v, resumed %v", name, w.storage[0], resumed(log.String())))
	w.learn(name, log.String())
	// The published one is the new one, here and there; the one before is kept.
	all, published := w.local()
	if all[published] != name || len(all) > keep {
		w.t.Errorf("%d of %v is published, want %s and no more than %d", published, all, name, keep)
	}
	for _, b := range before {
		if b == from && keep > 1 && !slices.Contains(slices.Collect(maps.Values(all)), from) {
			w.t.Errorf("%s is not among %v, which are to be %d", from, all, keep)
		}
	}
	if newest := w.there()[0]; w.models[newest.Identity] != name || len(w.there()) > w.retained {
		w.t.Errorf("the newest of %d models in the remote directory is %s, want %s of at most %d", len(w.there()), w.models[newest.Identity], name, w.retained)
	}
}

// resumed reports whether the process with a log has gone on from a snapshot.
func resumed(log string) bool { return strings.Contains(log, "training goes on from the snapshot") }

// learn gives the published model its name, if it is new, and reports whether it was. A
// process may also have restored models from the remote directory, which are known.
func (w *nights) learn(name, log string) bool {
	w.t.Helper()
	list, err := modeldir.Generations(w.dir())
	if err != nil {
		return false
	}
	for _, g := range list {
		id := g.Manifest.Identity()
		if _, known := w.models[id]; known {
			continue
		}
		if !g.Published {
			w.t.Errorf("generation %d is new and not published\n%s", g.Number, log)
		}
		w.models[id] = name
		return true
	}
	return false
}

// rollback makes another generation the model.
func (w *nights) rollback() {
	w.t.Helper()
	all, _ := w.local()
	if len(all) == 0 {
		return
	}
	numbers := slices.Sorted(maps.Keys(all))
	s := nightStep{Do: "rollback", Model: w.dir(), To: one(w.rng, numbers...)}
	w.crashed(&s)
	w.do(&s)
	if now, published := w.local(); published != s.To || len(now) != len(all) {
		w.t.Errorf("%d of %v is published", published, now)
	}
	w.newest()
}

// publish publishes the model.
func (w *nights) publish() {
	w.t.Helper()
	if all, _ := w.local(); len(all) == 0 {
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
	if i < 0 || i > 0 && strings.HasSuffix(there[0].Owner, ":"+modeldir.RealDir(w.dir())) {
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
		if done && s.Do == "restore" {
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
	w.same(s.Model, m.Identity)
	if err := os.RemoveAll(at); err != nil {
		w.t.Fatal(err)
	}
}

// same fails unless a model is what it should be.
func (w *nights) same(model, identity string) {
	w.t.Helper()
	name, ok := w.models[identity]
	if !ok {
		w.t.Fatalf("%s is no model that was trained", model)
	}
	in, err := Inspect(w.t.Context(), model, true, quiet)
	if err != nil {
		w.t.Fatalf("%s, which is %s: %v", model, name, err)
	}
	if want := w.want(name); in.Digest != want || len(in.Faults) > 0 {
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
	for _, g := range list {
		w.same(modeldir.JoinName(w.dir(), g.Number), g.Manifest.Identity())
	}
	numbers := make(map[int]bool)
	for _, m := range w.there() {
		if w.models[m.Identity] == "" || numbers[m.Number] {
			w.t.Errorf("generation %d of the remote directory is not known, or there twice", m.Number)
		}
		numbers[m.Number] = true
	}
}
