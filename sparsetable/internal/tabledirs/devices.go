package tabledirs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/contract"
)

// OpenDevices opens the devices, unless they are already open.
func (d *Set) OpenDevices(ctx context.Context) error {
	if d.Devices != nil {
		return nil
	}
	d.own = true
	open := func(dir string) error {
		on, err := blockio.Open(ctx, dir, blockio.Options{
			QueueDepth: d.QueueDepth, Direct: d.Direct, Logger: d.Logger, ReadOnly: d.ReadOnly,
		})
		if err != nil {
			return err
		}
		if d.Source != nil {
			on = blockio.Arriving(on, d.Source)
		}
		d.Devices = append(d.Devices, on)
		return nil
	}
	if d.AllowLost {
		return d.withoutLostDirs(open)
	}
	for _, dir := range d.Names {
		if err := open(dir); err != nil {
			return err
		}
	}
	return nil
}

// withoutLostDirs leaves out directories that do not exist or cannot be read, and records those
// that are empty.
func (d *Set) withoutLostDirs(open func(dir string) error) error {
	var dirs []string
	for _, dir := range d.Names {
		_, err := os.Stat(dir)
		var files Files
		if err == nil {
			files, err = FilesIn(dir)
		}
		if err == nil {
			err = open(dir)
		}
		if err != nil {
			d.Lost = append(d.Lost, Lost{Dir: dir, Err: err})
			continue
		}
		known := slices.ContainsFunc(d.Lost, func(l Lost) bool { return l.Dir == dir })
		if len(files.Names()) == 0 && !known {
			d.Lost = append(d.Lost, Lost{Dir: dir, Replaced: true})
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) == 0 {
		return fmt.Errorf("%w: none of the table's directories can be used: %w", contract.ErrFiles, d.Lost[0].Err)
	}
	d.Names = dirs
	return nil
}

// CloseDevices closes the devices that OpenDevices has opened.
func (d *Set) CloseDevices() error {
	if !d.own {
		return nil
	}
	var errs []error
	for _, on := range d.Devices {
		errs = append(errs, on.Close())
	}
	return errors.Join(errs...)
}
