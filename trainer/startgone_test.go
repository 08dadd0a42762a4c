package trainer

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/trainer/generations"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// lostAndRestored trains nights 21 to 23 on a machine that is lost then. Its newest model is
// restored to another one.
func lostAndRestored(t *testing.T, uri string, set ...string) *machine {
	t.Helper()
	m := newMachine(t, uri, set...)
	for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23"} {
		m.night(date)
	}
	if err := os.RemoveAll(m.at); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: m.at + "/model", Options: quiet.transfer()}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestNightAgainAfterRestore checks a machine to which only the newest model was restored. A night
// that is trained again starts from the same model as before, which is fetched from output.remote
// and leaves nothing behind. That night and the next one are the same as on a machine that was not
// lost. Meanwhile the restored model stays published.
func TestNightAgainAfterRestore(t *testing.T) {
	for name, set := range map[string][]string{"memory": nil, "ssd": onSSD("sparse_table.dirs=[AT/a, AT/b]")} {
		t.Run(name, func(t *testing.T) {
			left := newMachine(t, "", set...)
			want := map[string]string{}
			for _, date := range []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"} {
				want[date] = left.night(date).Digest
			}
			uri := "file://" + t.TempDir()
			m := lostAndRestored(t, uri, append(set, "output.remote_keep_generations=4")...)
			dir := m.at + "/model"
			if _, err := m.train("2026-11-23", `output.remote=""`, "seed=9"); errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "gen-000002, from which it was made, no longer exists;") {
				t.Errorf("without output.remote: %v", err)
			}
			if _, err := m.train("2026-11-23", "data.columns[0]={name: region, role: label}", "data.columns[7]={name: label}"); err == nil || !strings.Contains(m.log.String(), "for this run") {
				t.Errorf("a run of bad rows: %v\n%s", err, m.log.String())
			}
			if now, err := inference.Inspect(t.Context(), dir, false, testjobs.Quiet); err != nil || now.Digest != want["2026-11-23"] {
				t.Errorf("after a run that failed: %+v, %v", now, err)
			}
			for _, date := range []string{"2026-11-23", "2026-11-24", "2026-11-22", "2026-11-21"} {
				if date == "2026-11-22" { // its model is not the published one's parent
					m = lostAndRestored(t, "file://"+t.TempDir(), append(set, "output.remote_keep_generations=4")...)
					dir = m.at + "/model"
				}
				s := m.night(date)
				if s.Digest != want[date] {
					t.Errorf("night %s has digest %s, want %s", date, s.Digest, want[date])
				}
				if date == "2026-11-23" && s.WarmStart != dir+"@2" || date == "2026-11-22" && s.WarmStart != dir+"@1" || date == "2026-11-21" && s.WarmStart != "" {
					t.Errorf("night %s has started from %s\n%s", date, s.WarmStart, m.log.String())
				}
				if again := strings.Contains(m.log.String(), "the model of this run replaces it"); again != (date < "2026-11-23") {
					t.Errorf("night %s: it is said that a later one is published: %v", date, again)
				}
				if left := entriesOf(t, dir+"/start") + entriesOf(t, m.at+"/[ab]/start-*"); left != "" {
					t.Errorf("left of the restored model: %s", left)
				}
			}
		})
	}
}

// TestNightAgainFromAModelThatIsGone checks that if output.remote does not have the model either,
// or cannot be read, the night ends with an error that says so, and changes nothing.
func TestNightAgainFromAModelThatIsGone(t *testing.T) {
	uri := t.TempDir()
	m := lostAndRestored(t, uri, "output.remote_keep_generations=1")
	_, err := m.train("2026-11-23", "seed=2")
	if errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "no longer exists, nor is it in "+uri) {
		t.Errorf("%v", err)
	}
	if err := os.Rename(uri, uri+".away"); err != nil {
		t.Fatal(err)
	}
	_, err = m.train("2026-11-23", "seed=2")
	if errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "output.remote may have it, but cannot be read") {
		t.Errorf("%v", err)
	}
	if all, err := generations.List(m.at + "/model"); err != nil || len(all) != 1 || all[0].State != generations.Published || all[0].Generation != 3 || !all[0].StartedFromGone {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestNightIsThereAlready gives the command of a night again when its model exists and the one from
// which it was made does not. The command succeeds, and does what was left to do. With another job
// or other data, it is an error that says what differs.
func TestNightIsThereAlready(t *testing.T) {
	uri := t.TempDir()
	m := newMachine(t, uri, "output.keep_generations=1")
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log + "/train-0.tsv")
	if err != nil {
		t.Fatal(err)
	}
	file := m.at + "/day.tsv"
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	modified := info.ModTime()
	const date, data = "2026-11-22", "data.train=[AT/day.tsv]"
	m.night("2026-11-21")
	want := m.night(date, data)
	anew := func() { // else the night can be trained again
		t.Helper()
		if err := errors.Join(os.RemoveAll(uri), os.MkdirAll(uri+"/generations", 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	anew()
	before := entriesOf(t, m.at+"/model/*")
	s := m.night(date, data)
	m.said("the model of this night exists already")
	if s.Already != m.at+"/model@2" || s.Digest != want.Digest || s.Steps != want.Steps || s.Published == nil || s.Published.Already {
		t.Errorf("%+v, published %+v", s, s.Published)
	}
	if now := entriesOf(t, m.at+"/model/*"); now != before {
		t.Errorf("the model directory has %s, had %s", now, before)
	}
	anew()
	refused := func(say string, set ...string) {
		t.Helper()
		_, err := m.train(date, set...)
		if errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "no longer exists") || !strings.Contains(err.Error(), say) {
			t.Errorf("%v", err)
		}
	}
	refused("they differ in training.epochs", data, "training.epochs=3")
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	refused("they differ in the files of data.train", data)
	if err := os.Chtimes(file, time.Time{}, modified); err != nil {
		t.Fatal(err)
	}
	m.removeFiles(t, "model/gen-*/table/snapshot-*")
	if _, err := m.train(date, data); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "cannot be used either") {
		t.Errorf("the model of the night has lost its table: %v", err)
	}
}

// TestNightAgainOnAnotherMachine loses the machine of a night after it has published its model,
// when output.remote no longer has the model from which that was made. Given again on another
// machine, the command restores the model of the night, and does not begin with a new one, which
// would take its place. That also holds for another job or other data, for which the command ends
// with an error. A first night has begun with a new model, and does so again.
func TestNightAgainOnAnotherMachine(t *testing.T) {
	for name, set := range map[string][]string{"memory": nil, "ssd": onSSD("sparse_table.dirs=[AT/a, AT/b]"), "dates": {"output.model_dir=AT/model/{{date}}"}} {
		t.Run(name, func(t *testing.T) {
			uri := t.TempDir()
			m := newMachine(t, uri, append(set, "output.remote_keep_generations=1")...)
			lose := func() {
				t.Helper()
				if err := os.RemoveAll(m.at); err != nil {
					t.Fatal(err)
				}
			}
			first := m.night("2026-11-21")
			lose()
			if s := m.night("2026-11-21"); s.Already != "" || s.WarmStart != "" || s.Digest != first.Digest {
				t.Errorf("the first night: %+v", s)
			}
			want := m.night("2026-11-22")
			lose()
			if _, err := m.train("2026-11-22", "training.epochs=3"); errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), "they differ in training.epochs") {
				t.Errorf("of another job: %v", err)
			}
			lose()
			s := m.night("2026-11-22")
			m.said("the model of this night exists already")
			if s.Already == "" || s.Digest != want.Digest || s.Published == nil || !s.Published.Already {
				t.Errorf("%+v, published %+v", s, s.Published)
			}
			if left := records(t, m.at); left != 0 {
				t.Error("it has not all arrived")
			}
			if next := m.night("2026-11-23"); next.WarmStart == "" || next.Steps <= want.Steps {
				t.Errorf("the next night: %+v", next)
			}
		})
	}
}

// TestNightIsThereAlreadyButItsStartIsNotWhole checks a night whose start exists, but has lost a
// directory of its table and cannot be restored. If the model of the night is complete, that does
// not matter, with output.remote or without. If it has lost a directory, too, the command fails.
func TestNightIsThereAlreadyButItsStartIsNotWhole(t *testing.T) {
	for name, uri := range map[string]string{"published": t.TempDir(), "not published": ""} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, uri, onSSD("sparse_table.dirs=[AT/a, AT/b]", "output.remote_keep_generations=1")...)
			m.night("2026-11-21")
			want := m.night("2026-11-22")
			loseIn(t, m.at+"/b", "*-gen-000001-*", "new disk")
			if s := m.night("2026-11-22"); s.Already != m.at+"/model@2" || s.Steps != want.Steps {
				t.Errorf("%+v", s)
			}
			m.said("the model of this night exists already")
			if _, err := m.train("2026-11-22", "training.epochs=3"); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount the missing file system") || !strings.Contains(err.Error(), "they differ in training.epochs") {
				t.Errorf("of another job: %v", err)
			}
			loseIn(t, m.at+"/b", "*-gen-000002-*", "new disk")
			if _, err := m.train("2026-11-22"); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount the missing file system") || !strings.Contains(err.Error(), "cannot be used either") {
				t.Errorf("with no model that is whole: %v", err)
			}
		})
	}
}

// TestLeftStartIsRemoved checks that a model that was restored for a run that was then killed is
// deleted by the next run, whether that run resumes or begins. A directory of that name without a
// model is not deleted.
func TestLeftStartIsRemoved(t *testing.T) {
	uri := t.TempDir()
	m := newMachine(t, uri)
	m.night("2026-11-21")
	start := m.at + "/model/start"
	leave := func() {
		t.Helper()
		if _, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: start, Options: quiet.transfer()}); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	m.night("2026-11-22")
	if disk.Exists(start) {
		t.Error("it is there after a run that began")
	}
	j, err := m.job("2026-11-23", "pipeline.batches_per_pass=1", everyPass)
	if err != nil {
		t.Fatal(err)
	}
	if !killedAt(t, j, 4, true) {
		t.Fatal("not killed")
	}
	leave()
	if s := train(t, j); len(s.Resumed) != 1 || disk.Exists(start) {
		t.Errorf("it is there after a run that went on: %+v", s.Resumed)
	}
	if err := os.Mkdir(start, 0o755); err != nil {
		t.Fatal(err)
	}
	m.night("2026-11-24")
	if !disk.Exists(start) {
		t.Error("a directory that is no model was deleted")
	}
}

// TestLeftStartOnFailedDisk checks that a completely or partly restored model of a killed run does
// not keep a night from starting from that model, although a disk with files of its table has
// failed since. The files are deleted when the disk works again.
func TestLeftStartOnFailedDisk(t *testing.T) {
	uri := "file://" + t.TempDir()
	set := onSSD("sparse_table.dirs=[AT/a, AT/b]", "output.remote_keep_generations=9", "output.keep_generations=1")
	for i, fault := range []error{syscall.EIO, syscall.EROFS} {
		for _, begun := range []bool{false, true} {
			m := lostAndRestored(t, uri, set...)
			start, dirs := m.at+"/model/start", []string{m.at + "/a", m.at + "/b"}
			var to *modeldir.Restoring
			var err error
			if begun {
				to, err = modeldir.Restore(start, 2, "id", dirs)
				err = errors.Join(err, to.Close())
			} else {
				_, err = transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, Number: 2, To: start, Dirs: dirs, Options: quiet.transfer()})
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := fails(t, dirs[i], fault, fault); err != nil {
				t.Fatal(err)
			}
			if s := m.night("2026-11-23"); s.WarmStart != m.at+"/model@2" || len(s.LeftOut) != 1 {
				t.Errorf("started from %q, left out %+v", s.WarmStart, s.LeftOut)
			}
			m.said("the model that was restored to start from could not be deleted")
			diskfault.Inject(nil)
			m.night("2026-11-24")
			if left := entriesOf(t, start) + entriesOf(t, m.at+"/[ab]/start-*"); left != "" {
				t.Errorf("left of the restored model: %s", left)
			}
			if err := os.RemoveAll(strings.TrimPrefix(uri, "file://")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestNumbersOfRestoredModels checks that a model that is restored beside others gets a number of
// its own, while its parent is recorded by the number in the remote directory, which here is that
// of an unrelated local model. Everything that follows the chain must use the identities of the
// models: training a night again, a rollback, which models stay, what is published late, and what
// is listed.
func TestNumbersOfRestoredModels(t *testing.T) {
	uri := t.TempDir()
	m := newMachine(t, uri, onSSD("sparse_table.dirs=[AT/a, AT/b]", "output.keep_generations=4", "output.remote_keep_generations=9")...)
	m.night("2026-11-21")
	m.night("2026-11-22")
	dir := m.at + "/model"
	for _, to := range []int{1, 2} { // both get new numbers in the remote directory, 3 and 4
		if _, err := modeldir.Rollback(dir, to); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.PublishAgain(t.Context(), dir, quiet.transfer()); err != nil {
			t.Fatal(err)
		}
	}
	third := m.night("2026-11-23") // 3 here, from 2, and 5 there, from 4
	fourth := m.night("2026-11-24")
	loseIn(t, m.at+"/a", "*-gen-000004-*", "new disk")
	m.night("2026-11-25") // restores 4 as 5, and becomes 6
	all, err := generations.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range all {
		got = append(got, strings.TrimPrefix(g.Night, "2026-11-")+" from "+strings.TrimPrefix(g.StartedFrom, dir))
	}
	if want := "25 from @5, 24 from @3, 23 from @2, 22 from @1"; strings.Join(got, ", ") != want {
		t.Errorf("the models are %s, want %s", strings.Join(got, ", "), want)
	}
	// Back to the restored model of night 24, that night again, and night 23 again.
	if back, err := modeldir.Rollback(dir, 0); err != nil || back.To.Number != 5 {
		t.Fatalf("back to %d, %v", back.To.Number, err)
	}
	if s := m.night("2026-11-24"); s.WarmStart != dir+"@3" || s.Digest != fourth.Digest {
		t.Errorf("the night again has started from %s\n%s", s.WarmStart, m.log.String())
	}
	if s := m.night("2026-11-23"); s.WarmStart != dir+"@2" || s.Digest != third.Digest {
		t.Errorf("the night before again has started from %s\n%s", s.WarmStart, m.log.String())
	}
}

// TestInterruptedNightOnARestoredMachine checks that the snapshot of an interrupted night in
// snapshots.remote is resumed even if the model that the night started from was restored and has
// another number.
func TestInterruptedNightOnARestoredMachine(t *testing.T) {
	uri := t.TempDir()
	set := []string{"pipeline.batches_per_pass=1", "snapshots.every=1 pass", "snapshots.remote=" + t.TempDir(), "snapshots.remote_every=1 snapshot"}
	m := newMachine(t, uri, append(set, "output.keep_generations=3")...)
	m.night("2026-11-21")
	want := m.night("2026-11-22").Digest
	dir := m.at + "/model"
	if _, err := modeldir.Rollback(dir, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.PublishAgain(t.Context(), dir, quiet.transfer()); err != nil { // as number 3
		t.Fatal(err)
	}
	j, err := m.job("2026-11-22")
	if err != nil {
		t.Fatal(err)
	}
	if !lostAt(t, j, 6, true) {
		t.Fatal("there were not so many passes")
	}
	if out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, To: dir, Options: quiet.transfer()}); err != nil || out.Generation != 3 {
		t.Fatal(out, err)
	}
	s := m.night("2026-11-22")
	if len(s.Resumed) != 1 || s.Digest != want {
		t.Errorf("it went on at %+v, with digest %s, want %s\n%s", s.Resumed, s.Digest, want, m.log.String())
	}
	if all, err := generations.List(dir); err != nil || all[0].StartedFrom != dir+"@3" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestNightAgainFromAModelWithoutItsTable checks a night that is trained again and starts from a
// model that is not published and has lost a directory of its table. Whether the night succeeds or
// not, the published model does not go back to an older one, so that the next night includes all
// nights.
func TestNightAgainFromAModelWithoutItsTable(t *testing.T) {
	uri := t.TempDir()
	m := newMachine(t, uri, onSSD("sparse_table.dirs=[AT/a, AT/b]", "output.keep_generations=4", "output.remote_keep_generations=9")...)
	m.night("2026-11-21")
	second := m.night("2026-11-22")
	dir := m.at + "/model"
	loseIn(t, m.at+"/b", "*-gen-000001-*", "new disk")
	if _, err := m.train("2026-11-22", "data.columns[0]={name: region, role: label}", "data.columns[7]={name: label}"); err == nil {
		t.Error("a run of bad rows succeeds")
	}
	m.said("restored from output.remote for this run")
	if now, err := inference.Inspect(t.Context(), dir, false, testjobs.Quiet); err != nil || now.Digest != second.Digest {
		t.Errorf("after a run that failed, the model is %+v, %v", now, err)
	}
	if s := m.night("2026-11-22"); s.WarmStart != dir+"@1" || s.Digest != second.Digest || len(s.Recoveries) != 1 {
		t.Errorf("the night again has started from %s, recoveries %+v\n%s", s.WarmStart, s.Recoveries, m.log.String())
	}
}
