package configs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestEarlierModelDirs: each directory that the template gives at an earlier date, newest
// first, with the night. That of the night before may be the same one.
func TestEarlierModelDirs(t *testing.T) {
	for _, c := range []struct {
		dir, date, want string
		shares          bool // the directory of the night before
	}{
		{"m", "2026-03-02", "", true},
		{"m/{{date}}", "2026-03-02", "m/2026-03-01 of 2026-03-01, m/2026-02-28 of 2026-02-28, m/2026-02-27 of 2026-02-27", false},
		{`m/{{date -1d \"20060102\"}}/x`, "2026-03-02T07", "m/20260228/x of 2026-03-01T23, m/20260227/x of 2026-02-28T23, m/20260226/x of 2026-02-27T23", true},
		{`${ROOT}/{{date \"2006\"}}/{{date \"01\"}}`, "2026-03-02", "/models/2026/02 of 2026-02-28, /models/2026/01 of 2026-01-31, /models/2025/12 of 2025-12-31", true},
		{`m/{{date \"2006-01-02-15\"}}`, "2026-03-02T01", "m/2026-03-02-00 of 2026-03-02T00, m/2026-03-01-23 of 2026-03-01T23, m/2026-03-01-22 of 2026-03-01T22", false},
		{"m-{{date}}~/x", "2026-03-02", "m-2026-03-01~/x of 2026-03-01, m-2026-02-28~/x of 2026-02-28, m-2026-02-27~/x of 2026-02-27", false},
		{"m/{{date -6h}}", "2026-03-02T07", "m/2026-03-01 of 2026-03-02T05, m/2026-02-28 of 2026-03-01T05, m/2026-02-27 of 2026-02-28T05", true},
		{`m/{{date \"Mon\"}}`, "2026-03-02", "m/Sun of 2026-03-01, m/Sat of 2026-02-28, m/Fri of 2026-02-27", false},
	} {
		j, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Date: c.date, Set: []string{`output.model_dir="` + c.dir + `"`, "timezone=America/Havana"},
			Env: func(name string) (string, bool) { return "/models", name == "ROOT" }})
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for dir, night := range j.EarlierModelDirs() {
			if have = append(have, fmt.Sprintf("%s of %s", dir, night)); len(have) == 3 {
				break
			}
		}
		if got := strings.Join(have, ", "); got != c.want || j.ModelDirHasDate() != (c.want != "") || j.SharesModelDir() != c.shares {
			t.Errorf("%s at %s:\n%s, want\n%s; it is that of the night before: %v", c.dir, c.date, got, c.want, !c.shares)
		}
	}
	// It ends.
	n := 0
	for range mustParse(t, smallJob, `output.model_dir="m/{{date}}"`).EarlierModelDirs() {
		n++
	}
	if want := 20777; n != want {
		t.Errorf("%d days from 1970 to the day before 2026-11-20, want %d", n, want)
	}
}

// TestNight: two jobs are of the same night if all that depends on their dates is the same.
func TestNight(t *testing.T) {
	for _, c := range []struct{ set, date, want string }{
		{"seed=1", "", ""},
		{"seed=1", "2026-11-20", "2026-11-20"},
		{"seed=1", "2026-11-20T06", "2026-11-20T06"},
		{`name="n-{{date}}"`, "", "2026-11-20"},
		{`data.train=["logs/{{date -1d}}/*.tsv"]`, "2026-11-20", "2026-11-20"},
		{`data.train=["logs/{{date \"2006/01/02/15\"}}/*.tsv"]`, "2026-11-20", "2026-11-20T00"},
		{`data.train=["logs/{{date -1h}}/*.tsv"]`, "", "2026-11-20T00"},
	} {
		j, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Date: c.date, Set: []string{c.set, "timezone=UTC"}, Env: noEnv,
			Now: func() time.Time { return time.Date(2026, 11, 20, 0, 30, 0, 0, time.UTC) }})
		if err != nil {
			t.Fatal(err)
		}
		if j.Night() != c.want {
			t.Errorf("%s at %q: %q, want %q", c.set, c.date, j.Night(), c.want)
		}
	}
	// The name as it was written is the same at any date.
	a := mustParse(t, smallJob, `name="n-{{date}}"`)
	if a.PlainName() != "n-{{date}}" || a.Name != "n-2026-11-20" {
		t.Errorf("%q, %q", a.PlainName(), a.Name)
	}
	if j := mustParse(t, strings.Replace(smallJob, "name: small\n", "", 1)); j.PlainName() != j.Name {
		t.Errorf("%q, %q", j.PlainName(), j.Name)
	}
}
