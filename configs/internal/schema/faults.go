package schema

import (
	"fmt"
	"slices"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Fault reports a fault of path at p.
func (d *Decoder) Fault(p yamltree.Place, path, format string, args ...any) {
	d.Faults = append(d.Faults, yamltree.Fault{Place: p, Path: path, Message: fmt.Sprintf(format, args...)})
	d.markBad(path)
}

// markBad marks a path as having no usable value, so that no consequences are reported.
func (d *Decoder) markBad(path string) {
	d.bad[path] = true
	for p := path; p != "" && !d.unsound[p]; p = parentPath(p) {
		d.unsound[p] = true
	}
}

// FaultAt reports a fault at the value of path or, if it was not given, at the nearest enclosing
// value that was.
func (d *Decoder) FaultAt(path, format string, args ...any) {
	d.Fault(d.placeOf(path), path, format, args...)
}

func (d *Decoder) placeOf(path string) yamltree.Place {
	if p, ok := d.Given[path]; ok {
		return p
	}
	if p, ok := d.Keys[path]; ok { // its value was left out
		return p
	}
	for p := parentPath(path); p != ""; p = parentPath(p) {
		if at, ok := d.Keys[p]; ok {
			return at
		}
		if at, ok := d.Given[p]; ok {
			return at
		}
	}
	return yamltree.Place{Line: 1, Column: 1}
}

func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// FaultKey reports a fault at the key of path rather than at its value.
func (d *Decoder) FaultKey(path, format string, args ...any) {
	at, ok := d.Keys[path]
	if !ok {
		at = d.placeOf(path)
	}
	d.Fault(at, path, format, args...)
}

// Sound reports whether no fault was found in the paths, or in anything below them.
func (d *Decoder) Sound(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return d.unsound[p] })
}

// Bad reports whether a fault was found in the path itself, or in an item of it.
func (d *Decoder) Bad(path string) bool { return d.bad[path] }
