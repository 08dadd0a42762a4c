package modeldir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLineage checks that a chain follows the recorded parents of the models, uses their numbers
// only if an earlier version has not recorded the parents, and never leads to a model that has been
// trained for more steps.
func TestLineage(t *testing.T) {
	// A model is written "NUMBER:ID steps < NUMBER:ID", with what it was made from; without an ID, an
	// earlier version has saved that.
	for _, c := range []struct {
		all  []string // the first is published
		want string
	}{
		{[]string{"3:c 30 < 2:b", "2:b 20 < 1:a", "1:a 10"}, "3 2 1"},
		{[]string{"3:c 30 < 2:b", "2:x 20", "1:a 10"}, "3"},             // number 2 is another model by now
		{[]string{"3:c 30 < 2:b", "2:x 20", "1:b 10"}, "3 1"},           // and what was 2 is 1
		{[]string{"5:c 30 < 2:b", "4:b 20", "2:b 20"}, "5 2"},           // twice there: that with the number
		{[]string{"5:c 30 < 3:b", "4:b 20", "2:b 20"}, "5 4"},           // or the newest
		{[]string{"5:c 30 < host/m 2:b", "4:b 20", "2:x 20"}, "5 4"},    // restored elsewhere, with its number there
		{[]string{"5:c 30 < host/m 2", "4:b 20", "2:b 20"}, "5"},        // nobody knows whether it is this one
		{[]string{"3:c 30 < 2", "2:b 20 < 1", "1:a 10"}, "3 2 1"},       // by an earlier version
		{[]string{"3:c 30 < 2", "2:b 40 < 1", "1:a 10"}, "3"},           // that cannot be
		{[]string{"2:c 30 < 2", "1:a 10"}, "2"},                         // restored with a number that is its own by now
		{[]string{"3:c 30 < 4:d", "4:d 40 < 3:c"}, "3 4"},               // no chain, and no endless loop
		{[]string{"3:c 30 < 2:b", "fault 2:b 20 < 1:a", "1:a 10"}, "3"}, // not known
		{[]string{"3:c 30", "2:b 20 < 1:a", "1:a 10"}, "3"},             // a new model
		{[]string{"fault 3:c 30 < 2:b", "2:b 20 < 1:a", "1:a 10"}, ""},  // neither
	} {
		var all []Generation
		for i, text := range c.all {
			g := Generation{Published: i == 0}
			if rest, ok := strings.CutPrefix(text, "fault "); ok {
				text, g.Fault = rest, ErrNoModel
			}
			own, from, _ := strings.Cut(text, " < ")
			if _, err := fmt.Sscanf(strings.Replace(own, ":", " ", 1), "%d %s %d", &g.Number, &g.Manifest.ID, &g.Manifest.Step); err != nil {
				t.Fatal(err)
			}
			m := &g.Manifest
			g.Name, m.Generation = nameOf(g.Number), nameOf(g.Number)
			if rest, ok := strings.CutPrefix(from, "host/m "); ok {
				from, m.StartedFrom.ModelDir = rest, "host/m"
			}
			if from != "" {
				number, id, _ := strings.Cut(from, ":")
				m.StartedFrom.Generation, m.StartedFrom.Identity = "gen-00000"+number, id
			}
			all = append(all, g)
		}
		var got []string
		for _, g := range Lineage(all) {
			got = append(got, fmt.Sprint(g.Number))
		}
		if have := strings.Join(got, " "); have != c.want {
			t.Errorf("%q: the chain is %s, want %s", c.all, have, c.want)
		}
	}
}

// TestParentsReadOnce checks that the directory is read only once for the parents of many models.
func TestParentsReadOnce(t *testing.T) {
	dir, parents := t.TempDir(), make(Parents)
	m := Manifest{FormatVersion: FormatVersion, Generation: nameOf(1), ID: "a", Dense: DenseName(1)}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, nameOf(1)), 0o755), m.writeOwn(dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		child := &Manifest{StartedFrom: Origin{Generation: nameOf(1), Identity: "a"}}
		if at, g, ok := parents.Of(dir, child); !ok || at != dir || g.Number != 1 {
			t.Errorf("%s, %+v, %v", at, g, ok)
		}
		if err := os.RemoveAll(filepath.Join(dir, nameOf(1))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRollbackPassesOverTheSameModel checks that a rollback from a model that was restored because
// its table was lost does not lead to the first copy of the same model.
func TestRollbackPassesOverTheSameModel(t *testing.T) {
	all := []Generation{
		{Number: 5, Name: nameOf(5), Published: true, Manifest: Manifest{ID: "x"}},
		{Number: 4, Name: nameOf(4), Manifest: Manifest{ID: "x"}},
		{Number: 3, Name: nameOf(3), Manifest: Manifest{ID: "w"}},
	}
	if to, err := rollbackTarget("m", all, 5, 0); err != nil || to.Number != 3 {
		t.Errorf("back to %d, %v", to.Number, err)
	}
	if to, err := rollbackTarget("m", all[:2], 5, 0); err == nil {
		t.Errorf("back to %d", to.Number)
	}
}
