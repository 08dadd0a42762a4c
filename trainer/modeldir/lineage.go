package modeldir

import (
	"iter"
	"slices"
)

// A model records which model it was made from, by that model's identity, which stays the same
// wherever it is restored or copied to, and by its number at that time. The number is only a hint:
// a restored model can have another number than before, and its old number can be that of another
// model. If an earlier version saved a model without that identity, only the number is known, and a
// model that has taken more steps cannot be the parent.

// parent returns the index in all, the generations of one directory, of the model that child was
// made from, or -1 if it is not among them. here says that child names this directory.
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

// Parents finds the models that models were made from. It caches what it has read of model
// directories, by name, since it is called for each of their models, of which there may be hundreds.
type Parents map[string][]Generation

// Of returns the model that child, which is in dir, was made from, and the directory that has it:
// dir, or the one that child names. ok is false if neither has it.
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

// MadeFrom yields the models from which m, which is in dir, was made, each from the next, with
// their directories, as far as they are on this machine.
func MadeFrom(dir string, m *Manifest) iter.Seq2[string, Generation] {
	return func(yield func(string, Generation) bool) {
		parents := make(Parents)
		for seen := make(map[string]bool); ; {
			at, g, ok := parents.Of(dir, m)
			name := JoinName(at, g.Number)
			if !ok || seen[name] || !yield(at, g) { // else wrong manifests could form a loop
				return
			}
			seen[name] = true
			dir, m = at, &g.Manifest
		}
	}
}

// lineage returns the indexes of the models from which all[i] was made, as far as they are in all:
// itself, the one that it started from, and so on.
func lineage(all []Generation, i int) []int {
	var out []int
	for i >= 0 && !slices.Contains(out, i) {
		out = append(out, i)
		child := &all[i].Manifest
		i = parent(all, child, child.StartedFrom.ModelDir == "")
	}
	return out
}

// Lineage returns the model of the directory, the generation from which it was made, the one from
// which that was made, and so on, as far as all, the result of Generations, has them.
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

// retained returns the generations that stay if keep of them may: the model and those from which it
// was made, then the newest of the others, and last those that cannot be used.
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
