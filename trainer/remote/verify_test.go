package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aibox/internal/errkind"
	"aibox/internal/testseed"
)

// countingStore counts how often objects are opened. Objects that fail names cannot be read.
type countingStore struct {
	*memStore
	fail func(name string) error // nil: none

	mu     sync.Mutex
	opened map[string]int
}

func (s *countingStore) Open(ctx context.Context, name string, size, offset int64) (io.ReadCloser, error) {
	if path.Dir(name) == objectsDir {
		s.mu.Lock()
		s.opened[path.Base(name)]++
		s.mu.Unlock()
		if s.fail != nil {
			if err := s.fail(path.Base(name)); err != nil {
				return nil, err
			}
		}
	}
	return s.memStore.Open(ctx, name, size, offset)
}

// several returns a store with models of two jobs and a snapshot, which share objects.
func several(t *testing.T) (*memStore, *Directory) {
	t.Helper()
	s := newMemStore()
	d := Open("mem", s, quiet)
	_, snapshot := snapshot("run", 1)
	for _, p := range []Publication{
		night("a", 1).publication("a", 1), night("a", 2).publication("a", 2), night("b", 1).publication("b", 1), snapshot,
	} {
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return s, d
}

// damages are ways in which an object is damaged.
var damages = map[string]func(s *memStore, name string, good memFile){
	"missing": func(s *memStore, name string, _ memFile) { delete(s.files, name) },
	"short":   func(s *memStore, name string, good memFile) { s.files[name] = memFile{data: good.data[:1]} },
	"long": func(s *memStore, name string, good memFile) {
		s.files[name] = memFile{data: append(bytes.Clone(good.data), 'x')}
	},
	"changed": func(s *memStore, name string, good memFile) {
		wrong := bytes.Clone(good.data)
		wrong[len(wrong)/2] ^= 1
		s.files[name] = memFile{data: wrong}
	},
}

// TestVerify checks that every object is read once, and that a damaged one is reported with all
// files that need it, whatever the damage.
func TestVerify(t *testing.T) {
	s, d := several(t)
	counting := &countingStore{memStore: s, opened: make(map[string]int)}
	v, err := Open("mem", counting, quiet).Verify(t.Context(), 0)
	if err != nil || len(v.All) != 4 || len(v.Faults)+len(v.Manifests) != 0 || v.Objects != len(s.names(objectsDir)) || v.Bytes != s.bytesOf(objectsDir) {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, name := range s.names(objectsDir) {
		if counting.opened[name] != 1 {
			t.Errorf("%s was opened %d times", name, counting.opened[name])
		}
	}
	shared := 0
	for _, object := range s.names(objectsDir) {
		name := path.Join(objectsDir, object)
		good := s.files[name]
		want := make(map[Use]bool)
		for _, m := range v.All {
			for _, f := range m.Files {
				if slices.ContainsFunc(f.Parts, func(p Part) bool { return p.Object == object }) {
					want[Use{m, f.Name}] = true
				}
			}
		}
		for what, damage := range damages {
			damage(s, name, good)
			got, err := d.Verify(t.Context(), 0)
			if err != nil || len(got.Faults) != 1 || got.Faults[0].URI != "mem/"+name || len(got.Faults[0].Of) != len(want) {
				t.Fatalf("%s is %s: %+v, %v", name, what, got, err)
			}
			for _, of := range got.Faults[0].Of {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(u Use) bool { return u.ID == of.ID && u.File == of.File }) {
					t.Errorf("%s is %s: %s of %d does not need it", name, what, of.File, of.Number)
				}
			}
			if len(want) > 1 {
				shared++
			}
			s.files[name] = good
		}
	}
	if shared == 0 {
		t.Error("no object is shared")
	}
}

// TestVerifyOne checks that nothing else is read if one generation is verified.
func TestVerifyOne(t *testing.T) {
	s, d := several(t)
	all, _, err := d.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := all[slices.IndexFunc(all, func(m *Manifest) bool { return m.Job == "b" })]
	if len(objectsOf([]*Manifest{m})) == len(s.names(objectsDir)) {
		t.Fatal("it has all objects")
	}
	for _, name := range s.names(objectsDir) {
		if !slices.ContainsFunc(objectsOf([]*Manifest{m}), func(p *Part) bool { return p.Object == name }) {
			delete(s.files, path.Join(objectsDir, name))
		}
	}
	for name := range s.files {
		if path.Dir(name) == generationsDir && !strings.Contains(name, m.ID) {
			s.files[name] = memFile{data: []byte("no manifest")}
		}
	}
	v, err := d.Verify(t.Context(), m.Number)
	if err != nil || v.Objects != len(objectsOf([]*Manifest{m})) || len(v.Faults)+len(v.Manifests) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := d.Verify(t.Context(), 1); m.Number == 1 || err != nil || len(v.Manifests) != 1 {
		t.Errorf("one whose manifest is damaged: %+v, %v", v, err)
	}
	if _, err := d.Verify(t.Context(), 99); !errors.Is(err, ErrNone) {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestVerifyManifests checks that a manifest that is damaged, or was written by a newer version, is
// a fault of its own, and that the others are verified.
func TestVerifyManifests(t *testing.T) {
	s, d := several(t)
	names := s.names(generationsDir)
	s.files[path.Join(generationsDir, names[0])] = memFile{data: []byte("{}")}
	newer := &Manifest{FormatVersion: FormatVersion + 1, ID: newID(), Number: 77, AiboxVersion: "99", Job: "a"}
	data, err := newer.encode()
	if err != nil {
		t.Fatal(err)
	}
	s.files[newer.committedName()] = memFile{data: data}
	s.files[path.Join(pendingDir, newID()+".json")] = memFile{data: []byte("{}")}
	v, err := d.Verify(t.Context(), 0)
	if err != nil || len(v.All) != 3 || len(v.Faults) != 0 || len(v.Manifests) != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	newers := 0
	for _, err := range v.Manifests {
		if errors.Is(err, errkind.ErrNewer) {
			newers++
		}
	}
	if newers != 1 {
		t.Errorf("%v", v.Manifests)
	}
}

// TestVerifyUnreadable checks that objects that cannot be read are reported beside other faults. If
// none can be read, that is an error.
func TestVerifyUnreadable(t *testing.T) {
	s, _ := several(t)
	names := s.names(objectsDir)
	broken := map[string]bool{names[0]: true, names[len(names)-1]: true}
	wrong := path.Join(objectsDir, names[1])
	damages["changed"](s, wrong, s.files[wrong])
	away := &countingStore{memStore: s, opened: make(map[string]int), fail: func(name string) error {
		if broken[name] {
			return syscall.EIO
		}
		return nil
	}}
	d := Open("mem", away, quiet)
	v, err := d.Verify(t.Context(), 0)
	if err != nil || len(v.Faults) != 3 {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, f := range v.Faults {
		if broken[path.Base(f.URI)] != errors.Is(f.Err, syscall.EIO) || f.URI == "mem/"+wrong != errors.As(f.Err, new(*DamagedError)) {
			t.Errorf("%+v", f)
		}
	}
	away.fail = func(string) error { return syscall.EIO }
	if v, err := d.Verify(t.Context(), 0); !errors.Is(err, syscall.EIO) || errors.As(err, new(*DamagedError)) {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestVerifyEnds checks that verifying ends with the cause of its context, which does not count as
// a fault.
func TestVerifyEnds(t *testing.T) {
	s, _ := several(t)
	told := errors.New("told to stop")
	ctx, stop := context.WithCancelCause(t.Context())
	stopping := &countingStore{memStore: s, opened: make(map[string]int), fail: func(string) error {
		stop(told)
		return nil
	}}
	if v, err := Open("mem", stopping, quiet).Verify(ctx, 0); !errors.Is(err, told) || v != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestVerifyWhilePublishing checks that nothing counts as damaged while models are published and
// deleted, at whatever operation.
func TestVerifyWhilePublishing(t *testing.T) {
	before := newMemStore()
	for i := 1; i <= 3; i++ {
		if _, err := Open("mem", before, quiet).Publish(t.Context(), night("a", i).publication("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	rng, stride := testseed.Rand(t), 9
	if testseed.Fresh() { // in make stress
		stride = 1
	}
	for first, ended := 0, false; !ended; first += 1 + rng.IntN(stride) {
		for second, done := 0, false; !done; second += 1 + rng.IntN(stride) {
			s := &memStore{files: maps.Clone(before.files)}
			verifies, publishes := newSteps(), newSteps()
			p := night("a", 6).publication("a", 6)
			p.Keep = 1
			publishes.start(t, s, quiet, p)
			d := Open("mem", &faultyStore{memStore: s, steps: verifies}, quiet)
			var v *Verified
			verifies.begin(func() (err error) {
				v, err = d.Verify(t.Context(), 0)
				return err
			})
			ended = verifies.run(first)
			done = publishes.run(second)
			verifies.run(-1)
			publishes.run(-1)
			if verifies.err != nil || len(v.Faults)+len(v.Manifests) > 0 {
				t.Fatalf("the one is stopped after %d operations, until the other one has made %d: %+v, %v", first, second, v, verifies.err)
			}
		}
	}
}

// TestVerifyDeletedMeanwhile checks that a generation that is deleted while one of its objects is
// read is no fault, while an object that is deleted alone is one.
func TestVerifyDeletedMeanwhile(t *testing.T) {
	for _, all := range []bool{true, false} {
		s, _, m, _ := published(t, quiet)
		name := path.Join(objectsDir, m.Files[0].Parts[0].Object)
		vanishing := &vanishingStore{memStore: s, name: name, gone: func() {
			if all {
				_ = s.Remove(t.Context(), m.committedName())
			}
		}}
		v, err := Open("mem", vanishing, quiet).Verify(t.Context(), 0)
		if err != nil || (len(v.Faults) == 0) != all || (len(v.All) == 0) != all {
			t.Errorf("all is deleted: %v: %+v, %v", all, v, err)
		}
	}
}

// TestRepair checks that a publication that verifies uploads damaged parts again, in place. All
// models that share the parts are then complete, keep their numbers, and nothing else is uploaded.
func TestRepair(t *testing.T) {
	s, d := several(t)
	p := night("a", 2).publication("a", 2)
	all, _, err := d.Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := all[slices.IndexFunc(all, func(m *Manifest) bool { return m.Identity == p.Identity })]
	before := maps.Clone(s.files)
	p.Verify = true
	if out, err := d.Publish(t.Context(), p); err != nil || !out.Already || out.MendedBytes != 0 {
		t.Fatalf("of a model that is whole: %+v, %v", out, err)
	}
	for _, part := range objectsOf([]*Manifest{m}) {
		name := path.Join(objectsDir, part.Object)
		for what, damage := range damages {
			damage(s, name, s.files[name])
			out, err := d.Publish(t.Context(), p)
			if err != nil || !out.Already || out.MendedBytes != part.Bytes || out.UploadedBytes != 0 || out.Generation != m.Number {
				t.Fatalf("%s is %s: %+v, %v", name, what, out, err)
			}
			if !maps.EqualFunc(s.files, before, func(a, b memFile) bool { return bytes.Equal(a.data, b.data) }) {
				t.Fatalf("%s is %s: something else has changed", name, what)
			}
		}
	}
}

// TestRepairWithNewModel checks that a new model that shares a damaged object with an earlier model
// repairs the earlier model as well.
func TestRepairWithNewModel(t *testing.T) {
	s, d, m, _ := published(t, quiet)
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == "table/a-4.bucket" })
	name := path.Join(objectsDir, m.Files[i].Parts[0].Object)
	damages["changed"](s, name, s.files[name])
	p := night("a", 5).publication("a", 5)
	p.Verify = true
	out, err := d.Publish(t.Context(), p)
	if err != nil || out.Already || out.MendedBytes != m.Files[i].Parts[0].Bytes {
		t.Fatalf("%+v, %v", out, err)
	}
	wantGenerations(t, d, 5, 4)
	s.clean(t)
}

// TestRepairWithoutBytes checks a model on this machine that does not have the bytes of a damaged
// object. The object is left as it is, and the damaged parts of the model are uploaded as new
// objects.
func TestRepairWithoutBytes(t *testing.T) {
	s, d, m, c := published(t, quiet)
	p := c.publication("a", 4)
	other := maps.Clone(c)
	other["dense"] = strings.ToUpper(c["dense"]) // as large
	p.Files, p.Verify = other.publication("a", 4).Files, true
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == "dense" })
	name := path.Join(objectsDir, m.Files[i].Parts[0].Object)
	damages["changed"](s, name, s.files[name])
	wrong := s.files[name].data
	s.after = func() {
		if f, there := s.files[name]; there && !bytes.Equal(f.data, wrong) {
			t.Error("the damaged object has other bytes")
		}
	}
	out, err := d.Publish(t.Context(), p)
	if err != nil || out.Already || out.Generation != 5 {
		t.Fatalf("%+v, %v", out, err)
	}
	all := wantGenerations(t, d, 5)
	dir := t.TempDir()
	if _, err := fetch(t, d, all[0], dir); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, other)
	s.clean(t)
}

// TestRepairGone checks that a generation is published anew if another process deletes it while it
// is being verified.
func TestRepairGone(t *testing.T) {
	s, _, m, c := published(t, quiet)
	gone := func() { _ = s.Remove(t.Context(), m.committedName()) }
	vanishing := &vanishingStore{memStore: s, name: path.Join(objectsDir, m.Files[0].Parts[0].Object), gone: gone}
	p := c.publication("a", 4)
	p.Verify = true
	d := Open("mem", vanishing, quiet)
	if out, err := d.Publish(t.Context(), p); err != nil || out.Already {
		t.Fatalf("%+v, %v", out, err)
	}
	wantGenerations(t, d, 4)
	s.clean(t)
}

// damagingStore damages every object that is put.
type damagingStore struct{ *memStore }

func (s damagingStore) Put(ctx context.Context, name string, data io.ReaderAt, size int64, perm fs.FileMode) error {
	err := s.memStore.Put(ctx, name, data, size, perm)
	if path.Dir(name) == objectsDir {
		s.mu.Lock()
		damages["changed"](s.memStore, name, s.files[name])
		s.mu.Unlock()
	}
	return err
}

// TestRepairInVain checks that what was uploaded again is verified again, and that a model that is
// still damaged is an error.
func TestRepairInVain(t *testing.T) {
	s, _, m, c := published(t, quiet)
	name := path.Join(objectsDir, m.Files[0].Parts[0].Object)
	damages["changed"](s, name, s.files[name])
	p := c.publication("a", 4)
	p.Verify = true
	var damaged *DamagedError
	if out, err := Open("mem", damagingStore{s}, quiet).Publish(t.Context(), p); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "could not be verified") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestRepairFaults makes a publication that verifies and repairs fail at each of its operations,
// before or after the operation is done. No object may be worse than before, and the next
// publication must succeed.
func TestRepairFaults(t *testing.T) {
	for fault := 0; ; fault++ {
		s, d, m, c := published(t, quiet)
		good := maps.Clone(s.files)
		for i, part := range objectsOf([]*Manifest{m}) {
			name := path.Join(objectsDir, part.Object)
			damages[[]string{"missing", "short", "long", "changed"}[i%4]](s, name, s.files[name])
		}
		damaged := maps.Clone(s.files)
		p := c.publication("a", 4)
		p.Verify = true
		_, err := Open("mem", &faultyStore{memStore: s, fail: func(op int) (bool, bool) { return op == fault && fault%2 == 0, op >= fault }}, quiet).Publish(t.Context(), p)
		for name, f := range s.files {
			if path.Dir(name) == objectsDir && !bytes.Equal(f.data, good[name].data) && !bytes.Equal(f.data, damaged[name].data) {
				t.Fatalf("after a fault at operation %d, %s has other bytes", fault, name)
			}
		}
		out, again := d.Publish(t.Context(), p)
		if again != nil || !out.Already || out.Generation != 4 {
			t.Fatalf("after a fault at operation %d: %+v, %v", fault, out, again)
		}
		s.clean(t)
		if err == nil {
			break
		}
	}
}

// TestConcurrentRepairs lets two processes repair the same model while a third one publishes the
// next model and deletes the first. At whatever operation one of them is stopped, the models that
// are left in the end are complete.
func TestConcurrentRepairs(t *testing.T) {
	before, _, m, c := published(t, quiet)
	for _, part := range objectsOf([]*Manifest{m}) {
		name := path.Join(objectsDir, part.Object)
		damages["changed"](before, name, before.files[name])
	}
	p := c.publication("a", 4)
	p.Verify = true
	next := night("a", 5).publication("a", 5)
	next.Verify, next.Keep = true, 1
	rng := testseed.Rand(t)
	for range 40 {
		s := &memStore{files: maps.Clone(before.files)}
		one, other, deletes := newSteps(), newSteps(), newSteps()
		one.start(t, s, quiet, p)
		other.start(t, s, quiet, p)
		deletes.start(t, s, quiet, next)
		stops := fmt.Sprint(one.at(rng.IntN(60)), other.at(rng.IntN(60)), deletes.at(rng.IntN(60)))
		one.run(-1)
		other.run(-1)
		deletes.run(-1)
		d := Open("mem", s, quiet)
		if v, err := d.Verify(t.Context(), 0); err != nil || len(v.Faults) > 0 {
			t.Fatalf("stopped after %s operations: %+v, %v", stops, v, err)
		}
		last := night("a", 6).publication("a", 6)
		if _, err := d.Publish(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		s.clean(t)
	}
}
