package configs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"aibox/internal/nearest"
)

// TestTimezone: at 19:30 UTC it is tomorrow in China, today in the west, and half
// past in India.
func TestTimezone(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 20, 19, 30, 0, 0, time.UTC) }
	dir := `output.model_dir="m/{{date}}/{{date -1d}}/{{date \"2006010215\"}}/{{date -20h}}"`
	for _, c := range []struct{ system, key, want, zone string }{
		{"", "UTC", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"", "Asia/Shanghai", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
		{"Asia/Shanghai", "", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
		{":/usr/share/zoneinfo/Asia/Kolkata", "", "m/2026-11-21/2026-11-20/2026112101/2026-11-20", "Asia/Kolkata"},
		{"Asia/Shanghai", "America/Los_Angeles", "m/2026-11-20/2026-11-19/2026112011/2026-11-19", "America/Los_Angeles"},
		{"Nowhere/AtAll", "", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"CST-8", "", "m/2026-11-20/2026-11-19/2026112019/2026-11-19", "UTC"},
		{"CST-8", "Asia/Shanghai", "m/2026-11-21/2026-11-20/2026112103/2026-11-20", "Asia/Shanghai"},
	} {
		sets := []string{dir}
		if c.key != "" {
			sets = append(sets, "timezone="+c.key)
		}
		env := func(name string) (string, bool) { return c.system, name == "TZ" }
		j, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Now: now, Set: sets, Env: env})
		if err != nil {
			t.Fatal(err)
		}
		if j.Output.ModelDir != c.want || j.Timezone != c.zone || j.Date.Location().String() != c.zone || !j.Dated {
			t.Errorf("%+v: %s in %s", c, j.Output.ModelDir, j.Timezone)
		}
		unknown := c.key == "" && (c.system == "CST-8" || c.system == "Nowhere/AtAll")
		if text := strings.Join(j.Warnings(), "\n"); unknown != strings.Contains(text, "TZ is "+nearest.Quote(c.system)+", which is not the name of a time zone") || !unknown && text != "" {
			t.Errorf("%+v: warnings %q", c, text)
		}
		var shown bytes.Buffer
		if err := j.Show(&shown); err != nil {
			t.Fatal(err)
		}
		if want := "The date is " + c.want[2:12] + " (" + c.zone + ")"; !strings.Contains(shown.String(), want) || !strings.Contains(shown.String(), "\ntimezone: "+c.zone) {
			t.Errorf("%+v: config show prints %s", c, shown.String())
		}
	}
	// A given date is that date in every zone.
	j := mustParse(t, smallJob, "timezone=Pacific/Kiritimati", dir)
	if j.Output.ModelDir != "m/2026-11-20/2026-11-19/2026112000/2026-11-19" {
		t.Error(j.Output.ModelDir)
	}
	for _, zone := range []string{"CEST+2", "Asia/Shangai", `""`, "[UTC]"} {
		if _, err := Parse("a.yaml", []byte(smallJob), LoadOptions{Set: []string{"timezone=" + zone}, Env: noEnv}); err == nil || !strings.Contains(err.Error(), "timezone") {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

func TestExpandArguments(t *testing.T) {
	job, err := Dated(LoadOptions{Date: "2026-11-20", Set: []string{"data.format=csv", "timezone=Asia/Tokyo"}})
	if err != nil || job.Timezone != "Asia/Tokyo" {
		t.Fatal(job, err)
	}
	t.Setenv("PART", "x")
	for text, want := range map[string]string{
		"logs/{{date -1d}}/*.gz": "logs/2026-11-19/*.gz", "${PART}/{{date \"20060102\"}}": "x/20261120", "~/a $HOME": "~/a $HOME", "": "",
	} {
		if got, err := job.Expand("--data", text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := job.Expand("--data", "{{dat}}"); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Error(err)
	}
	if job.Dated && !job.DateGiven {
		t.Error("an argument is no part of the job")
	}
	for _, c := range []struct{ date, set, want string }{
		{"yesterday", "seed=1", "--date: "},
		{"", "timezone=Here", "--set timezone=Here: timezone: "},
		{"", "timezone=[UTC]", "--set timezone=[UTC]: timezone: "},
		{"", "timezone=", "--set timezone=: timezone: "},
	} {
		if _, err := Dated(LoadOptions{Date: c.date, Set: []string{c.set}}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestDatedWithHDFS: what is not set of data.hdfs has its default, and without any of it all is zero.
func TestDatedWithHDFS(t *testing.T) {
	for set, want := range map[string]HDFS{
		"timezone=Asia/Tokyo":    {},
		"data.format=csv":        {},
		"data.hdfs.user=etl":     {User: "etl", TimeoutMs: 10_000, RetryMs: 30_000},
		"data.hdfs.retry_ms=0":   {TimeoutMs: 10_000},
		" data.hdfs.user = nn ":  {User: "nn", TimeoutMs: 10_000, RetryMs: 30_000},
		"data.hdfs.timeout_ms=7": {TimeoutMs: 7, RetryMs: 30_000},
	} {
		if job, err := DatedWithHDFS(LoadOptions{Set: []string{set}}); err != nil || job.Data.HDFS != want {
			t.Errorf("%s: %+v, %v", set, job, err)
		}
	}
	if _, err := DatedWithHDFS(LoadOptions{Set: []string{"data.hdfs.kerberos_keytab=a"}}); err == nil || !strings.Contains(err.Error(), "needs kerberos_principal") {
		t.Error(err)
	}
}
