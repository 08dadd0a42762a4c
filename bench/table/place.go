package main

import (
	"errors"
	"os"
	"path/filepath"
)

// place is where a store lies: one directory on each SSD that it may use.
type place struct{ dirs []string }

// place makes directories of that name in those of the cell.
func (x *cell) place(name string) (p place, err error) {
	for _, dir := range append([]string{x.dir}, x.more...) {
		p.dirs = append(p.dirs, filepath.Join(dir, name))
		err = errors.Join(err, os.Mkdir(p.dirs[len(p.dirs)-1], 0o777))
	}
	return p, err
}

// copyFrom copies the store in q, if there is one.
func (p place) copyFrom(q place) error {
	for i, dir := range q.dirs {
		if err := os.CopyFS(p.dirs[i], os.DirFS(dir)); err != nil {
			return err
		}
	}
	return nil
}

func (p place) remove() (err error) {
	for _, dir := range p.dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
