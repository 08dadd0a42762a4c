package trainer

import (
	"testing"
	"time"

	"aibox/internal/panics"
)

// TestPassBeginsWhileSpaceIsGiven checks that the stage that pulls rows may find the disk full and
// end the snapshots while a pass begins.
func TestPassBeginsWhileSpaceIsGiven(t *testing.T) {
	s := &snapshots{writing: &image{}}
	s.mu.Lock() // by giveSpace
	begun := make(chan struct{})
	panics.Go("beginning a pass", func() {
		s.passBegun(time.Second)
		close(begun)
	})
	select {
	case <-begun:
		t.Error("a pass that begins has looked at the snapshot that is ended")
	case <-time.After(100 * time.Millisecond):
	}
	s.writing = nil
	s.mu.Unlock()
	<-begun
	if s.summary.StallSeconds != 0 {
		t.Errorf("training has waited %v s for a snapshot that there is not", s.summary.StallSeconds)
	}
}
