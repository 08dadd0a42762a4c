package main

import (
	"os"
	"strings"
	"testing"

	"aibox/internal/disk"
)

// TestDatesInEveryCommand checks that {{date}} means the same on every command line as in the job
// file, and that --date and the job's timezone determine it.
func TestDatesInEveryCommand(t *testing.T) {
	inSmallJob(t)
	for _, dir := range []string{"2026-11-19", "2026-11-20"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const date = " --date 2026-11-20"
	for _, line := range []string{
		"generate job.yaml --output 2026-11-19/{{date -1d}}.tsv --rows 300",
		"config check job.yaml --set output.model_dir=m-{{date}}",
		"config show job.yaml --set output.model_dir=m-{{date}} --set timezone=Asia/Shanghai",
		`train job.yaml --set output.model_dir=m-{{date}} --set data.eval=["{{date_-1d}}/*.tsv"]`,
		"eval --model-dir m-{{date}} --data {{date_-1d}}/*.tsv",
		"predict --model-dir m-{{date}} --data {{date_-1d}}/*.tsv --output {{date}}/scores.csv",
		"predict --model-dir m-{{date}} --data train.tsv --output {{date}}/again.csv --set timezone=Pacific/Kiritimati",
		"convert --from {{date_-1d}}/*.tsv --to {{date}}/a.parquet",
		"convert --job job.yaml --set timezone=UTC --from {{date_-1d}}/*.tsv --to {{date}}/b.libffm",
		"inspect m-{{date}}",
		"table stats m-{{date}}",
		"table export m-{{date}} --to {{date}}/rows.parquet",
		"table export job.yaml --set output.model_dir=m-{{date}} --to {{date}}/rows2.parquet",
		"table import t-{{date}} --from {{date}}/rows.parquet",
		"table import u-{{date}} --dir v-{{date}} --from {{date}}/rows.parquet --set timezone=UTC",
		"table import u-{{date}} --dir v-{{date}} --from {{date}}/rows.parquet",
		"table stats u-2026-11-20 --dir v-{{date}}",
		"table get u-{{date}} 17 --dir v-{{date}} --set timezone=UTC",
		"table verify u-{{date}} --dir v-{{date}}",
		"table compact u-{{date}} --dir v-{{date}}",
		"table export u-{{date}} --dir v-{{date}} --to {{date}}/rows3.parquet",
		"table orphans {{date}} --model m-{{date}}",
		"inspect m-{{date}} --set timezone=UTC",
		"generations m-{{date}}",
		"publish m-{{date}} --to file://" + wd + "/remote-{{date}} --set timezone=UTC",
		"generations file://" + wd + "/remote-{{date}}",
		"restore --from file://" + wd + "/remote-{{date}} --to r-{{date}}",
		"diff m-{{date}} r-{{date}} --data {{date_-1d}}/*.tsv",
		"rollback m-{{date}} --to 1",
		// Where there is no template, --date and the time zone change nothing.
		"inspect m-2026-11-20 --set timezone=UTC",
		"table stats m-2026-11-20 --set timezone=UTC",
		"table verify m-2026-11-20",
		"table get m-2026-11-20 17",
		"table orphans . --set timezone=UTC",
		"convert --from {{date_-1d}}/*.tsv --to {{date}}/c.csv --set timezone=UTC",
	} {
		args := strings.Fields(line + date)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "date_-1d", "date -1d")
		}
		if line[:8] == "generate" {
			args = []string{"generate", "job.yaml", "--output", "2026-11-19/{{date -1d}}.tsv", "--rows", "300", "--date", "2026-11-20"}
		}
		if o := aibox(args...); o.code != exitDone {
			t.Fatalf("aibox %s: exit %d: %s", strings.Join(args, " "), o.code, o.stderr)
		}
	}
	wantOnly(t, "2026-11-19", "2026-11-19.tsv")
	wantOnly(t, "2026-11-20", "a.parquet", "again.csv", "b.libffm", "c.csv", "rows.parquet", "rows2.parquet", "rows3.parquet", "scores.csv")
	for _, dir := range []string{"u-2026-11-20", "v-2026-11-20"} {
		if !disk.Exists(dir) {
			t.Errorf("there is no directory %s of the table", dir)
		}
	}
	// Kiritimati is 14 hours ahead of UTC and Pago Pago 11 hours behind it, so that
	// they never have the same date.
	today := func(zone string) string {
		o := aibox("table", "import", "z-{{date}}", "--from", "2026-11-20/{{date}}.parquet", "--set", "timezone="+zone)
		if o.code != exitData && o.code != exitIO {
			t.Fatalf("--set timezone=%s: exit %d: %s", zone, o.code, o.stderr)
		}
		return o.stderr
	}
	if a, b := today("Pacific/Kiritimati"), today("Pacific/Pago_Pago"); a == b {
		t.Errorf("table import has the same date in two time zones that never share one: %s", a)
	}
	if text := ok(t, "config", "show", "job.yaml", "--date", "2026-11-20", "--set", "timezone=Asia/Shanghai"); !strings.Contains(text, "The date is 2026-11-20 (Asia/Shanghai)") {
		t.Errorf("config show prints %s", text)
	}
	if o := aibox("train", "job.yaml", "--date", "2026-11-20", "--set", "timezone=Asia/Shanghai"); !strings.Contains(o.stderr, "Asia/Shanghai") {
		t.Errorf("the log lacks the time zone: %s", o.stderr)
	}
	for _, line := range []string{
		"eval --model-dir m-{{dat}} --data x", "predict --model-dir m-2026-11-20 --data x --output {{date+}}",
		"convert --from {{x}} --to y.csv", "inspect {{date --1}}", "table import t --from x.parquet --set training.epochs=2",
		"convert --from x.csv --to y.csv --set training.epochs=2", "inspect m --set epochs=2", "table orphans {{x}}",
		"table stats t-2026-11-20 --dir {{x}}", "table import t --from x.parquet --dir {{x}}", "table orphans . --model {{x}}", "eval --model-dir m --data x --date soon",
	} {
		if o := aibox(strings.Fields(line)...); o.code != exitUsage {
			t.Errorf("aibox %s: exit %d: %s", line, o.code, o.stderr)
		}
	}
}
