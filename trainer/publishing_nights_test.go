package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// sameNextNight trains a night on a machine that has nothing but the remote directory, and then on m,
// which has all models, and fails the test unless both make the same model from one of the night from.
func sameNextNight(t *testing.T, m *machine, uri, date, from string, set ...string) {
	t.Helper()
	fresh := newMachine(t, uri, set...)
	elsewhere := fresh.night(date)
	fresh.said("the model is restored")
	fresh.said(" night=" + from)
	here := m.night(date)
	m.said(" night=" + from)
	if here.Digest != elsewhere.Digest {
		t.Errorf("night %s: digest %s here, %s on a machine without models", date, here.Digest, elsewhere.Digest)
	}
}

// TestNightAgainRemotely checks that with a directory for each night, a night that is trained again
// does not take precedence over later ones in the remote directory either. They stay there, and a
// machine that has nothing starts from the latest one, like the machine that has all models.
func TestNightAgainRemotely(t *testing.T) {
	for name, set := range map[string][]string{"memory": nil, "ssd": onSSD("sparse_table.dirs=[AT/a, AT/b]")} {
		t.Run(name, func(t *testing.T) {
			uri := t.TempDir() + "/remote"
			set := append(set, "output.model_dir=AT/models/{{date}}")
			m := newMachine(t, uri, set...)
			for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-22", "2026-11-23", "2026-11-24"} {
				m.night(date)
			}
			latest := m.night("2026-11-24").Digest
			wantRemote(t, uri, []int{6, 4}, []string{"2026-11-24", "2026-11-23"})
			m.night("2026-11-23")
			wantRemote(t, uri, []int{7, 6}, []string{"2026-11-23", "2026-11-24"})
			if again := m.night("2026-11-22", "training.epochs=2"); again.Digest == latest {
				t.Fatal("the models cannot be told apart")
			}
			wantRemote(t, uri, []int{8, 7, 6}, []string{"2026-11-22", "2026-11-23", "2026-11-24"})

			to := filepath.Join(t.TempDir(), "model")
			if out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: to, Options: quiet.transfer()}); err != nil || out.Night != "2026-11-24" || out.Older != 0 {
				t.Errorf("restored %+v, %v", out, err)
			}
			sameNextNight(t, m, uri, "2026-11-25", "2026-11-24", set...)
			wantRemote(t, uri, []int{10, 9}, []string{"2026-11-25", "2026-11-25"})
		})
	}
}

// TestNightAgainKeepsTheOneBefore checks that a night that is trained again, in whatever directory,
// replaces its own model in the remote directory, and not that of the night before.
func TestNightAgainKeepsTheOneBefore(t *testing.T) {
	for _, dir := range []string{"AT/model", "AT/models/{{date}}", `AT/models/{{date "2006-01"}}`} {
		uri := t.TempDir() + "/remote"
		m := newMachine(t, uri, "output.model_dir="+dir)
		for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-22", "2026-11-22"} {
			m.night(date)
		}
		wantRemote(t, uri, []int{4, 1}, []string{"2026-11-22", "2026-11-21"})
		m.night("2026-11-23")
		wantRemote(t, uri, []int{5, 4}, []string{"2026-11-23", "2026-11-22"})
	}
}

// TestNightAgainAlone checks that as many models of the latest nights stay in the remote directory
// as it keeps, even if that is one, and that each night that is trained again makes room for the
// next one.
func TestNightAgainAlone(t *testing.T) {
	uri := t.TempDir() + "/remote"
	set := []string{"output.model_dir=AT/models/{{date}}", "output.remote_keep_generations=1"}
	m := newMachine(t, uri, set...)
	for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
		m.night(date)
	}
	for i, date := range []string{"2026-11-21", "2026-11-22"} {
		m.night(date)
		wantRemote(t, uri, []int{4 + i, 3}, []string{date, "2026-11-23"})
	}
	sameNextNight(t, m, uri, "2026-11-24", "2026-11-23", set...)
	wantRemote(t, uri, []int{7}, []string{"2026-11-24"})

	// From the one that is left no earlier night can start.
	fresh := newMachine(t, uri, set...)
	if s := fresh.night("2026-11-22"); s.WarmStart != "" {
		t.Errorf("started from %s", s.WarmStart)
	}
	fresh.said("none of an earlier night")
}

// TestLaterNightRemotely checks a machine that is lost while an earlier night is trained again. The
// next machine has only the model of that night. If a night starts from it, the log and the summary
// say that the remote directory has a later one, but only if there is one.
func TestLaterNightRemotely(t *testing.T) {
	const says = "output.remote has that of a later night, 2026-11-23,"
	for _, dir := range []string{"{{date}}", `{{date "2006-01"}}`} {
		uri := t.TempDir() + "/remote"
		set := []string{"output.model_dir=AT/models/" + dir, "output.remote_keep_generations=5"}
		lost := newMachine(t, uri, set...)
		for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
			lost.night(date)
		}
		other := newMachine(t, uri, set...)
		other.night("2026-11-22")
		s := other.night("2026-11-24")
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, says) }) {
			t.Errorf("%s: the warnings are %q", dir, s.Warnings)
		}
		other.said(says)
		for _, date := range []string{"2026-11-25", "2026-11-27"} {
			if s := other.night(date); strings.Contains(other.log.String(), "later night") {
				t.Errorf("%s: %s: the warnings are %q", dir, date, s.Warnings)
			}
		}
	}
}

// TestNightAgainInMonth checks that in a directory with the models of several nights, the one that
// was trained last is the model, also for a machine that has nothing.
func TestNightAgainInMonth(t *testing.T) {
	uri := t.TempDir() + "/remote"
	set := []string{`output.model_dir=AT/models/{{date "2006-01"}}`}
	m := newMachine(t, uri, set...)
	for _, date := range []string{"2026-10-31", "2026-11-02", "2026-11-03", "2026-11-02"} {
		m.night(date)
	}
	sameNextNight(t, m, uri, "2026-11-04", "2026-11-02", set...)
	m.night("2026-10-31")
	sameNextNight(t, m, uri, "2026-11-05", "2026-11-04", set...)
}

// TestRollbackOfNight checks that a machine that has restored the model of the night before, and
// rolls back to it in the directory of the night, makes it the model from which other machines
// start.
func TestRollbackOfNight(t *testing.T) {
	uri := t.TempDir() + "/remote"
	set := []string{"output.model_dir=AT/models/{{date}}", "output.keep_generations=3", "output.remote_keep_generations=5"}
	newMachine(t, uri, set...).night("2026-11-21")
	m := newMachine(t, uri, set...)
	m.night("2026-11-22")
	dir := filepath.Join(m.at, "models", "2026-11-22")
	goesBack(t, dir, uri)
	sameNextNight(t, m, uri, "2026-11-23", "2026-11-21", set...)

	// It goes forward again, though later nights are there by now.
	if _, err := modeldir.Rollback(dir, 2); err != nil {
		t.Fatal(err)
	}
	if out, err := transfer.PublishAgain(t.Context(), dir, quiet.transfer()); err != nil || out == nil || out.Generation != 6 {
		t.Fatalf("%+v, %v", out, err)
	}
	sameNextNight(t, m, uri, "2026-11-24", "2026-11-23", set...)
}

// TestNightsHereAndRemotely trains nights, trains them again and rolls them back, in random order,
// in directories for a night or for a month. Each next night must start from the same model on a
// machine that has only the remote directory as on the machine that has everything.
func TestNightsHereAndRemotely(t *testing.T) {
	for name, dir := range map[string]string{"a directory a night": "{{date}}", "a directory a month": `{{date "2006-01"}}`} {
		t.Run(name, func(t *testing.T) {
			rng := testseed.Rand(t)
			uri := t.TempDir() + "/remote"
			keep := 1 + rng.IntN(3)
			set := []string{"output.model_dir=AT/models/" + dir, "output.keep_generations=100", fmt.Sprint("output.remote_keep_generations=", keep)}
			m := newMachine(t, uri, set...)
			date := func(night int) string {
				return time.Date(2026, 10, 28+night, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
			}
			did := []string{fmt.Sprint("of the models, ", keep, " stay")}
			defer func() { t.Logf("what was done: %s", strings.Join(did, ", ")) }()
			m.night(date(0))
			for last := 0; last < 8 && !t.Failed(); {
				night := rng.IntN(last + 1)
				switch rng.IntN(4) {
				case 0, 1:
					last++
					did = append(did, date(last))
					copied := t.TempDir()
					if err := os.CopyFS(copied, os.DirFS(uri)); err != nil {
						t.Fatal(err)
					}
					elsewhere := newMachine(t, copied, set...).night(date(last))
					if here := m.night(date(last)); here.Digest != elsewhere.Digest {
						t.Errorf("night %s: digest %s here, %s on a machine without models", date(last), here.Digest, elsewhere.Digest)
					}
				case 2:
					did = append(did, date(night)+" again")
					m.night(date(night))
				case 3:
					j, err := m.job(date(night))
					if err != nil {
						t.Fatal(err)
					}
					if back, err := modeldir.Rollback(j.Output.ModelDir, 0); err == nil {
						did = append(did, fmt.Sprintf("%s back to generation %d of %s", j.Output.ModelDir, back.To.Number, back.To.Manifest.Night))
						if _, err := transfer.PublishAgain(t.Context(), j.Output.ModelDir, quiet.transfer()); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		})
	}
}
