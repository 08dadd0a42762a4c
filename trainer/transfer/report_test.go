package transfer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// TestUpdateReportAtOnce: what several processes note in a model directory at once, as a night that
// publishes and an `aibox publish`, is all there afterwards.
func TestUpdateReportAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				if err := UpdateReport(dir, func(r *Report) bool {
					r.Known = append(r.Known, fmt.Sprint(i, "-", j))
					return true
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r, err := readReport(dir)
	if known := r.Known; err != nil || len(known) != 80 {
		t.Errorf("%d of 80 notes are there: %q", len(known), known)
	}
}

// TestUnreadableReport: what a report says is not forgotten because it cannot be read for a moment.
func TestUnreadableReport(t *testing.T) {
	dir := t.TempDir()
	know := func(place string) error {
		return UpdateReport(dir, func(r *Report) bool {
			r.Known = append(r.Known, place)
			return true
		})
	}
	if err := know("/a"); err != nil {
		t.Fatal(err)
	}
	diskfault.Inject(func(operation, _ string) error {
		if operation == "read" {
			return unix.EIO
		}
		return nil
	})
	defer diskfault.Inject(nil)
	if err := know("/b"); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	diskfault.Inject(nil)
	if r, err := readReport(dir); err != nil || !slices.Equal(r.Known, []string{"/a"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
