package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"aibox/sparsetable/internal/blockio"
)

// openDevices opens the devices, unless they are open.
func (d *directories) openDevices(ctx context.Context) error {
	if d.devices != nil {
		return nil
	}
	d.own = true
	open := func(dir string) error {
		on, err := blockio.Open(ctx, dir, blockio.Options{
			QueueDepth: d.opts.SSD.QueueDepth, Direct: directModes[d.opts.SSD.Direct], Logger: d.opts.Logger, ReadOnly: d.opts.ReadOnly,
		})
		if err != nil {
			return err
		}
		if d.opts.SSD.Source != nil {
			on = blockio.Arriving(on, d.opts.SSD.Source)
		}
		d.devices = append(d.devices, on)
		return nil
	}
	if d.opts.SSD.AllowLost {
		return d.withoutLostDirs(open)
	}
	for _, dir := range d.opts.SSD.Dirs {
		if err := open(dir); err != nil {
			return err
		}
	}
	return nil
}

// withoutLostDirs leaves out the directories that do not exist or cannot be read, and notes
// those that are empty.
func (d *directories) withoutLostDirs(open func(dir string) error) error {
	var dirs []string
	for _, dir := range d.opts.SSD.Dirs {
		_, err := os.Stat(dir)
		var files Files
		if err == nil {
			files, err = FilesIn(dir)
		}
		if err == nil {
			err = open(dir)
		}
		if err != nil {
			d.lostDirs = append(d.lostDirs, LostDir{Dir: dir, Err: err})
			continue
		}
		known := slices.ContainsFunc(d.lostDirs, func(l LostDir) bool { return l.Dir == dir })
		if len(files.Names()) == 0 && !known {
			d.lostDirs = append(d.lostDirs, LostDir{Dir: dir, Replaced: true})
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("%w: none of the table's directories can be used: %w", ErrFiles, d.lostDirs[0].Err)
	}
	d.opts.SSD.Dirs = dirs
	return nil
}

// closeDevices closes those that it has opened.
func (d *directories) closeDevices() error {
	if !d.own {
		return nil
	}
	var errs []error
	for _, on := range d.devices {
		errs = append(errs, on.Close())
	}
	return errors.Join(errs...)
}
