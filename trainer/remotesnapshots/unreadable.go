package remotesnapshots

import (
	"errors"
	"slices"
	"sync"

	"aibox/trainer/modeldir"
)

// unreadable records which parts of the table uploads could not read on this machine. A bad block
// would keep all further snapshots from being uploaded.
type unreadable struct {
	dirs []string // of the table; nil if it is in the model directory, where it would not be recovered

	mu     sync.Mutex
	failed []string // files, or directories whose files cannot be opened
	lost   error    // set when one of them has failed twice: the error as training would report it
}

// note records why an upload has failed.
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
