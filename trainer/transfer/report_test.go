package transfer

import (
	"fmt"
	"sync"
	"testing"
)

// TestUpdateReportAtOnce: what several processes note in a model directory at once, as a night that publishes and an `aibox publish`,
// is all there afterwards.
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
	if known := readReport(dir).Known; len(known) != 80 {
		t.Errorf("%d of 80 notes are there: %q", len(known), known)
	}
}
