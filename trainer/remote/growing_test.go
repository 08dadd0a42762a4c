package remote

import (
	"fmt"
	"strings"
	"testing"
)

// withReport returns a snapshot with a report, which is not unique.
func withReport(n int, report string) (contents, Publication) {
	c := contents{"reports/metrics.jsonl": report}
	p := c.publication("job", 0)
	p.Owner, p.Identity, p.ParentIdentity, p.Kind, p.Run, p.Step = "host:run", fmt.Sprint("report", n), "", Snapshot, "run", int64(n)
	return c, p
}

// TestGrowingReport checks that of a report that grows, hardly more than the added lines is
// uploaded, and that it has few parts. A report that has changed is uploaded from the change on.
func TestGrowingReport(t *testing.T) {
	d := Open("mem://", newMemStore(), Options{partBytes: 1 << 20})
	report, uploaded := "", int64(0)
	publish := func(n int) *Published {
		t.Helper()
		c, p := withReport(n, report)
		out, err := d.Publish(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		all, faults, err := d.Snapshots(t.Context())
		if err != nil || len(faults) > 0 || len(all[0].Files[0].Parts) > maxGrown {
			t.Fatalf("%d: %v, %v, %d parts", n, err, faults, len(all[0].Files[0].Parts))
		}
		dir := t.TempDir()
		if _, err := fetch(t, d, all[0], dir); err != nil {
			t.Fatal(err)
		}
		wantFetched(t, dir, c)
		return out
	}
	for n := range 100 {
		added := lines(fmt.Sprint("step ", n), 10)
		report += added
		out := publish(n)
		if n%maxGrown < maxGrown-1 && n < maxGrown && out.UploadedBytes > int64(len(added)) {
			t.Errorf("%d bytes were added, %d uploaded", len(added), out.UploadedBytes)
		}
		uploaded += out.UploadedBytes
	}
	if uploaded > 3*int64(len(report)) {
		t.Errorf("%d bytes were uploaded of a report of %d", uploaded, len(report))
	}
	at := strings.Index(report, "step 95 ")
	report = report[:at] + "STEP" + report[at+4:]
	if out := publish(100); out.UploadedBytes > int64(len(report)/2) {
		t.Errorf("%d bytes were uploaded where the end of %d has changed", out.UploadedBytes, len(report))
	}
	report = report[:100]
	publish(101)
	report = "other" + report
	publish(102)
}

// TestGrowingReportContinued checks that a publication whose process was killed is continued as it
// was planned.
func TestGrowingReportContinued(t *testing.T) {
	d := Open("mem://", newMemStore(), Options{partBytes: 256})
	report := ""
	for n := range 3 {
		report += lines("step", 10)
		_, p := withReport(n, report)
		if _, err := d.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	report += lines("step", 50)
	c, p := withReport(3, report)
	h, err := d.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := d.sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.begin(t.Context(), &p, h, sizes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	all, _, err := d.Snapshots(t.Context())
	if err != nil || all[0].ID != m.ID {
		t.Fatalf("another manifest was made: %v", err)
	}
	dir := t.TempDir()
	if _, err := fetch(t, d, all[0], dir); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, dir, c)
}
