package remote

import (
	"fmt"
	"testing"
)

// prioritySave returns rows of a run that were saved at a step.
func prioritySave(run string, step int64) (contents, Publication) {
	c := contents{"rows": lines(fmt.Sprint(run, " rows of step ", step), 30)}
	p := c.publication("job", 0)
	p.Owner, p.Identity, p.ParentIdentity, p.Kind, p.Run, p.Step, p.Keep = "host:"+run, fmt.Sprint(run, " save ", step), "", PrioritySave, run, step, 100
	return c, p
}

// wantSaves fails the test unless the directory has complete priority saves of exactly these steps,
// the newest first.
func wantSaves(t *testing.T, d *Directory, run string, steps ...int64) {
	t.Helper()
	all, faults, err := d.PrioritySaves(t.Context())
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	var got []int64
	for _, m := range all {
		if m.Run == run {
			got = append(got, m.Step)
			c, _ := prioritySave(run, m.Step)
			dir := t.TempDir()
			if _, err := fetch(t, d, m, dir); err != nil {
				t.Fatal(err)
			}
			wantFetched(t, dir, c)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(steps) {
		t.Fatalf("priority saves of the steps %v, want %v", got, steps)
	}
}

// TestPrioritySaves checks that priority saves stay until there is a snapshot that is as new, that
// they count neither as generations nor as snapshots, that they do not affect those of another
// machine, and that they are removed with the run.
func TestPrioritySaves(t *testing.T) {
	store := newMemStore()
	d := Open("mem://", store, Options{partBytes: 256})
	must := func(_ contents, p Publication) {
		t.Helper()
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	must(prioritySave("other", 2))
	must(snapshot("run", 1))
	for step := range int64(5) {
		must(prioritySave("run", 2+step))
	}
	wantSaves(t, d, "run", 6, 5, 4, 3, 2)
	if all, _, err := d.Snapshots(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d snapshots, %v", len(all), err)
	}
	if all, _, err := d.Generations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d generations, %v", len(all), err)
	}
	if all, _, err := d.All(t.Context()); err != nil || len(all) != 7 || all[0].Kind() != Snapshot || all[1].Step != 6 {
		t.Errorf("%d generations, snapshots and saves, %v", len(all), err)
	}
	must(snapshot("run", 4))
	wantSaves(t, d, "run", 6, 5)
	must(prioritySave("run", 7))
	_, few := prioritySave("run", 8)
	few.Keep = 2
	must(nil, few)
	wantSaves(t, d, "run", 8, 7)
	wantSaves(t, d, "other", 2)
	if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:run")); err != nil {
		t.Fatal(err)
	}
	wantSaves(t, d, "run")
	wantSaves(t, d, "other", 2)
	if _, err := d.RemoveSnapshots(t.Context(), "job", ofOwner("host:other")); err != nil {
		t.Fatal(err)
	}
	if len(store.files) > 0 {
		t.Errorf("left: %v", store.names("."))
	}
}

// TestPrioritySaveFaults makes every operation of an upload fail in turn, before or after it was
// done, once or permanently. What was there must stay complete. Once the directory works again, the
// upload must succeed, a snapshot must replace the saves, and nothing may be left over.
func TestPrioritySaveFaults(t *testing.T) {
	for n := range 4 {
		forGood, after := n%2 == 1, n >= 2
		for at := 0; ; at++ {
			works := func(int) (bool, bool) { return false, false }
			store := &faultyStore{memStore: newMemStore(), fail: works}
			d := Open("mem://", store, Options{partBytes: 256})
			newest, p := snapshot("run", 1)
			for _, p := range []Publication{p, func() Publication { _, p := prioritySave("run", 2); return p }()} {
				if _, err := d.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			store.ops = 0
			failed := false
			store.fail = func(op int) (bool, bool) {
				fail := op == at || forGood && op > at
				failed = failed || fail
				return fail && !after, fail && after
			}
			_, save := prioritySave("run", 3)
			_, err := d.Publish(t.Context(), save)
			store.fail = works
			if all, _, e := d.PrioritySaves(t.Context()); e != nil || len(all) == 0 || err == nil && len(all) != 2 {
				t.Fatalf("operation %d: %v, then %d saves, %v", at, err, len(all), e)
			}
			wantSnapshots(t, d, newest, 1)
			if _, err := d.Publish(t.Context(), save); err != nil {
				t.Fatalf("operation %d: %v", at, err)
			}
			wantSaves(t, d, "run", 3, 2)
			newest, p = snapshot("run", 3)
			if _, err := d.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			wantSaves(t, d, "run")
			wantSnapshots(t, d, newest, 2, 1)
			store.clean(t)
			if !failed {
				break
			}
		}
	}
}
