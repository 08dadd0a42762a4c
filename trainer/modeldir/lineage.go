package modeldir

import (
	"iter"
	"slices"
)

// A model says from which one it was made by the identity of that one, which stays the same
// wherever it is restored or copied to, and by its number at that time. The number is a hint only:
// a model that is restored can have another one than before, and its number can be that of another
// model. Where an earlier version has saved a model without that identity, there is nothing but the
// number, and a model that has taken more steps is no parent.

// parent is the index in all, the generations of one directory, of the model that child was made
// from; -1: it is not among them. here says that the directory is that which child names.
func parent(all []Generation, child *Manifest, here bool) int {
	from, found := &child.StartedFrom, -1
	for i := range all {
		g := &all[i]
		named := here && g.Name == from.Generation
		switch {
		case g.Fault != nil:
		case from.Identity == "":
			if named && g.Manifest.Step <= child.Step && g.Manifest.Identity() != child.Identity() {
				return i
			}
		case g.Manifest.Identity() == from.Identity && (found < 0 || named):
			found = i
		}
	}
	return found
}

// Parents finds the models that models were made from. It has what it has read of model
// directories, by their names: they may have hundreds of models, for each of which it is asked.
type Parents map[string][]Generation

// Of returns the model that child, which is in dir, was made from, and the directory that has
// it: dir, or the one that child names. ok is false if neither does.
func (p Parents) Of(dir string, child *Manifest) (at string, g Generation, ok bool) {
	from := child.StartedFrom
	for _, at := range slices.Compact([]string{dir, from.ModelDir}) {
		if at == "" {
			continue
		}
		all, known := p[at]
		if !known {
			all, _ = Generations(at) // it may be gone
			p[at] = all
		}
		if i := parent(all, child, at == from.ModelDir || from.ModelDir == ""); i >= 0 {
			return at, all[i], true
		}
	}
	return "", Generation{}, false
}

// MadeFrom yields the models from which m, which is in dir, was made, one from the other, with the
// directories that have them, as far as they are on this machine.
func MadeFrom(dir string, m *Manifest) iter.Seq2[string, Generation] {
	return func(yield func(string, Generation) bool) {
		parents := make(Parents)
		for seen := make(map[string]bool); ; {
			at, g, ok := parents.Of(dir, m)
			name := JoinName(at, g.Number)
			if !ok || seen[name] || !yield(at, g) { // else manifests that say nonsense could have no end
				return
			}
			seen[name] = true
			dir, m = at, &g.Manifest
		}
	}
}

// lineage returns the models from which all[i] was made, one from the other, as far as
// they are in all: itself, the one that it started from, and so on.
func lineage(all []Generation, i int) []int {
	var out []int
	for i >= 0 && !slices.Contains(out, i) {
		out = append(out, i)
		child := &all[i].Manifest
		i = parent(all, child, child.StartedFrom.ModelDir == "")
	}
	return out
}

// Lineage returns the model of the directory, the generation from which it was made, the
// one from which that was made, and so on, as far as all, which Generations has returned,
// has them.
func Lineage(all []Generation) []Generation {
	i := slices.IndexFunc(all, func(g Generation) bool { return g.Published && g.Fault == nil })
	if i < 0 {
		return nil
	}
	var out []Generation
	for _, j := range lineage(all, i) {
		out = append(out, all[j])
	}
	return out
}

// retained returns which generations stay if so many may: the model and those from which
// it was made, then the newest of the others, and last those that cannot be used.
func retained(all []Generation, keep int) []Generation {
	kept := Lineage(all)
	for _, damaged := range []bool{false, true} {
		for _, g := range all {
			if (g.Fault != nil) == damaged && !slices.ContainsFunc(kept, func(k Generation) bool { return k.Name == g.Name }) {
				kept = append(kept, g)
			}
		}
	}
	return kept[:min(len(kept), max(keep, 1))]
}
