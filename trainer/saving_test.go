package trainer

import (
	"context"
	"math/rand/v2"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// saver saves the table at random passes, without waiting until the snapshot is
// written: training goes on meanwhile. It saves after the first and the third pass
// in any case.
type saver struct {
	t       *testing.T
	rng     *rand.Rand
	passes  int
	pending *sparsetable.PendingSnapshot
	taken   int
}

func newSaver(t *testing.T) *saver {
	return &saver{t: t, rng: testseed.Rand(t)}
}

// afterPass is Options.afterPass. Of the snapshots only the last is kept.
func (s *saver) afterPass(ctx context.Context, r *run) error {
	tab := r.table.Table
	s.passes++
	if random := s.rng.IntN(3) == 0; !random && s.passes != 1 && s.passes != 3 {
		return nil
	}
	if s.pending != nil {
		info, err := s.pending.Wait()
		s.pending = nil
		if err != nil {
			return err
		}
		s.taken++
		if err := tab.DropSnapshot(info.ID); err != nil {
			return err
		}
	}
	var err error
	s.pending, err = tab.Snapshot(ctx, []byte("in between"))
	return err
}
