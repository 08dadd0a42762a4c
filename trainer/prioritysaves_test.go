package trainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/testseed"
	"aibox/trainer/generations"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/priority"
)

// priorityJob is a job that saves rows by priority with every local snapshot, of which one in
// eight is uploaded.
func priorityJob(t *testing.T, kind string, set ...string) *configs.Job {
	return partialJob(t, append([]string{
		"snapshots.remote=" + t.TempDir(), "snapshots.remote_every=8 snapshots", "snapshots.priority=" + kind, "recovery.max_lost_samples=1",
	}, set...)...)
}

var priorityKinds = []string{priority.MFU, priority.SSU, priority.SCAR}

// uploadedNow waits until the last snapshot and the last save are complete and uploaded.
func uploadedNow(ctx context.Context, t *testing.T, r *run) {
	r.snapshots.wait()
	u := r.snapshots.uploads
	if !u.Finish(ctx) || !u.Priority.Finish(ctx) {
		t.Error("a snapshot or a save was not uploaded")
	}
}

// remoteNames are the files in a directory of snapshots.remote.
func remoteNames(t *testing.T, j *configs.Job, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(j.Snapshots.Remote, dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestPrioritySavesChangeNothing checks that the model and the reports are the same as without
// priority saves, with a table that fits its memory and one that hardly does, and however many rows
// have been collected. In the end nothing is left of the saves.
func TestPrioritySavesChangeNothing(t *testing.T) {
	rng := testseed.Rand(t)
	for memory, kinds := range map[string][]string{"12MiB": priorityKinds, "5MiB": {one(rng, priorityKinds...)}} {
		sized := []string{"sparse_table.memory_bytes=" + memory}
		if memory == "5MiB" {
			sized = append(sized, "model.embedding_dim=32", "optimizer.rows.learning_rate=0.01")
		}
		left := partialJob(t, append(slices.Clip(sized), "snapshots.every=none")...)
		want := outcome(t, left, train(t, left))
		for _, kind := range kinds {
			t.Run(memory+"/"+kind, func(t *testing.T) {
				driven := memory == "12MiB"
				j := priorityJob(t, kind, sized...)
				opts, most := quiet, 0
				opts.afterPass = func(ctx context.Context, r *run) error {
					if driven {
						r.snapshots.uploads.Priority.Collect(r.state.Engine.Step)
						uploadedNow(ctx, t, r)
						most = max(most, len(remoteNames(t, j, "priority")))
					}
					return nil
				}
				s, err := Train(t.Context(), j, opts)
				if err != nil {
					t.Fatal(err)
				}
				got := outcome(t, j, s)
				got.compare(t, &want)
				p := s.Snapshots.Priority
				if p == nil || driven && (p.Uploaded < 4 || p.UploadedBytes == 0 || most == 0) || p.Failed > 0 || s.Memory.Priority == 0 {
					t.Errorf("saves: %+v, at most %d at a time; memory %+v", p, most, s.Memory)
				}
				if names := append(remoteNames(t, j, "priority"), remoteNames(t, j, "objects")...); len(names) > 0 {
					t.Errorf("left: %v", names)
				}
			})
		}
	}
}

// stoppedAfterSaves trains a job and kills it after pass at. A snapshot was uploaded after the
// first pass, and there are saves after passes before at, which have all rows that were accessed
// since the save before, and so the last one those of the last local snapshot.
func stoppedAfterSaves(t *testing.T, j *configs.Job, at int) {
	t.Helper()
	c := newCrash(t, j)
	opts, passes := quiet, 0
	opts.afterPass = func(ctx context.Context, r *run) error {
		uploadedNow(ctx, t, r)
		if passes++; passes == at {
			c.now()
			return errCrash
		}
		if p := r.snapshots.uploads.Priority; passes == at-1 || passes == at-3 {
			p.Begin(1 << 30)
			p.Collect(r.state.Engine.Step)
		}
		return nil
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	c.happened()
}

// rarely has no saves but those that a test begins.
var rarely = []string{"snapshots.remote_every=1000 snapshots", "snapshots.priority_fraction=1"}

// TestLostRowsGoBackToPrioritySaves checks that if all rows that were used since the last uploaded
// snapshot were saved, and older versions of them before, a lost directory changes nothing: the
// model is that of an undisturbed run, so each row is restored in its newest version. The reported
// portion of lost samples is the same as without priority saves.
func TestLostRowsGoBackToPrioritySaves(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	for _, kind := range []string{priority.MFU, priority.SCAR} {
		for i := range 2 {
			t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) {
				j := priorityJob(t, kind, rarely...)
				stoppedAfterSaves(t, j, 9)
				if n := len(remoteNames(t, j, "priority")); n != 2 {
					t.Fatalf("%d saves", n)
				}
				lose(t, j, i, "new disk")
				s, said := trainAloud(t, j)
				if len(s.Recoveries) != 1 {
					t.Fatalf("recoveries %+v\n%s", s.Recoveries, said)
				}
				rec := s.Recoveries[0]
				if rec.RowsByPriority == 0 || rec.RowsByPriority > rec.RowsRestored || rec.RowsRestored != rec.RowsLost {
					t.Errorf("%+v\n%s", rec, said)
				}
				if want := float64(rec.Examples-256) / float64(2*testjobs.TrainRows) * rec.LostShare; rec.LostSamples < 0.999*want {
					t.Errorf("%v of the samples are lost, want at least %v", rec.LostSamples, want)
				}
				got := outcome(t, j, s)
				got.metrics = regexp.MustCompile(`"lost_samples":[^,]*,`).ReplaceAllString(got.metrics, "")
				got.compare(t, &want)
			})
		}
	}
}

// TestPrioritySavesAreListed checks that priority saves are listed after the snapshots.
func TestPrioritySavesAreListed(t *testing.T) {
	j := priorityJob(t, priority.MFU, rarely...)
	stoppedAfterSaves(t, j, 6)
	all, total, err := generations.ListRemote(t.Context(), new(configs.Job), j.Snapshots.Remote, quiet.Logger)
	if err != nil || len(all) != 3 || all[0].State != generations.Resumable || all[0].Rows != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	sum := all[0].OwnBytes
	for i, g := range all[1:] {
		sum += g.OwnBytes
		if g.State != generations.PriorityRows || g.Generation != 0 || g.Rows == 0 || g.Bytes <= g.Rows || g.OwnBytes != g.Bytes || g.Steps != []int64{20, 12}[i] ||
			g.Run == "" || g.Run != all[0].Run || g.Job != j.PlainName() || g.PublishedAt == "" || g.SavedAt == "" {
			t.Errorf("%+v", g)
		}
	}
	if sum != total {
		t.Errorf("%d bytes in all, want %d", total, sum)
	}
}

// TestSubSampledRowsGoBack checks that rows that were saved by a sub-sample are restored from it.
func TestSubSampledRowsGoBack(t *testing.T) {
	j := priorityJob(t, priority.SSU, rarely...)
	stoppedAfterSaves(t, j, 9)
	lose(t, j, 0, "new disk")
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 1 || s.Recoveries[0].RowsByPriority == 0 {
		t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
	}
}

// TestDamagedPrioritySave checks that a damaged save is skipped with a warning, and that the run
// continues with older rows.
func TestDamagedPrioritySave(t *testing.T) {
	for _, what := range []string{"priority", "objects"} {
		t.Run(what, func(t *testing.T) {
			rng := testseed.Rand(t)
			j := priorityJob(t, priority.MFU, rarely...)
			stoppedAfterSaves(t, j, 9)
			lose(t, j, 0, "new disk")
			names := remoteNames(t, j, what)
			slices.Sort(names)
			if what == "objects" { // that of the newest save
				names = slices.DeleteFunc(names, func(n string) bool {
					saves := remoteNames(t, j, "priority")
					_, id, _ := strings.Cut(strings.TrimSuffix(filepath.Base(slices.Max(saves)), ".json"), "-")
					return !strings.HasPrefix(filepath.Base(n), id)
				})
			}
			name := names[len(names)-1]
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			s, said := trainAloud(t, j)
			if len(s.Recoveries) != 1 || s.Recoveries[0].RowsByPriority == 0 || !strings.Contains(said, "are restored from older ones") {
				t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
			}
		})
	}
}
