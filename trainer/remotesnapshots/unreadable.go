package remotesnapshots

import (
	"errors"
	"slices"
	"sync"

	"aibox/trainer/modeldir"
)

// unreadable is what uploads could not read of the table on this machine. A bad block would keep
// all snapshots from being uploaded from then on.
type unreadable struct {
	dirs []string // of the table; nil: it is in the model directory, and would not be recovered

	mu     sync.Mutex
	failed []string // files, or directories whose files cannot be opened
	lost   error    // one of them has failed twice, as training would say it; nil: none has
}

// note takes note of why an upload has failed.
func (d *unreadable) note(err error) {
	var lost *modeldir.LostError
	if !errors.As(modeldir.TableFailed(d.dirs, err), &lost) {
		return
	}
	at := lost.Unreadable()
	for _, l := range lost.Lost {
		if len(at) == 0 {
			at = append(at, l.Dir)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range at {
		if slices.Contains(d.failed, path) {
			d.lost = lost
		}
		d.failed = append(d.failed, path)
	}
}

// tableLost fails with a *modeldir.LostError if the same file could not be read twice.
func (d *unreadable) tableLost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}
