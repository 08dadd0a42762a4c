package remote

import (
	"cmp"
	"maps"
	"slices"
)

// Most jobs have one model directory. If an earlier night is trained again, the directory goes back
// to it, so the newest generation comes first. A job that has one model directory per night starts
// from the latest night, whichever it has trained last, so its generations are sorted by ByNight.

// ByNight sorts generations of one job so that the model of the latest night comes first, and
// within a model directory the newest generation. All generations of a directory (Owner) count as
// of the night of the newest one that it has published, since it may have gone back to that night.
// A directory of another machine does not go back with it, as nothing says whether it should. night
// returns the night of a model as a text; later nights are greater, and "" is the earliest.
func ByNight(all []*Manifest, night func(*Manifest) string) {
	newest := make(map[string]*Manifest) // by Owner
	nights := make(map[string]string)
	for _, m := range all {
		if n := newest[m.Owner]; n == nil || m.Number > n.Number {
			newest[m.Owner], nights[m.Owner] = m, night(m)
		}
	}
	slices.SortStableFunc(all, func(a, b *Manifest) int {
		return cmp.Or(
			cmp.Compare(nights[b.Owner], nights[a.Owner]),
			cmp.Compare(newest[b.Owner].Number, newest[a.Owner].Number),
			cmp.Compare(b.Number, a.Number),
		)
	})
}

// stay returns the IDs of the job's generations, or of the run's snapshots or saves, that are kept
// when made is published: made and the best of the others, p.Keep in all. If nights have model
// directories of their own, and p.Keep others are better than made, made is kept in addition until
// the next publication. A model from which its directory was rolled back, or whose night was
// trained again, is worse than all others, since the present model was made from those of the
// nights before.
func (h *held) stay(p *Publication, made *Manifest) map[string]bool {
	var all []*Manifest
	for _, f := range slices.Backward(h.of[p.Kind].list) {
		if f.Job != p.Job || p.Kind != Generation && f.Run != p.Run {
			continue
		}
		if f.ID == made.ID || f.Identity != made.Identity { // an earlier copy of the same model is damaged
			all = append(all, f.Manifest)
		}
	}
	keep := max(p.Keep, 1)
	if p.Night == nil { // made is the best, even if it was there before
		all = slices.DeleteFunc(all, func(m *Manifest) bool { return m.ID == made.ID })
		keep--
		if p.Kind == Generation {
			abandonedLast(all, []*Manifest{made})
		}
	} else {
		ByNight(all, p.Night)
		newest := make(map[string]*Manifest) // by Owner
		for _, m := range slices.Backward(all) {
			if n := newest[m.Owner]; n == nil || m.Number > n.Number {
				newest[m.Owner] = m
			}
		}
		abandonedLast(all, slices.Collect(maps.Values(newest)))
	}
	out := map[string]bool{made.ID: true}
	for _, m := range all[:min(keep, len(all))] {
		out[m.ID] = true
	}
	return out
}

// abandonedLast moves those generations to the end of all that are neither in present nor an
// ancestor of one in present.
func abandonedLast(all, present []*Manifest) {
	byID, line := make(map[string]*Manifest), make(map[string]bool)
	for _, m := range all {
		byID[m.ID] = m
	}
	for _, m := range present {
		for m != nil && !line[m.ID] {
			line[m.ID] = true
			if m.Parent == nil {
				break
			}
			m = byID[m.Parent.ID]
		}
	}
	slices.SortStableFunc(all, func(a, b *Manifest) int {
		switch {
		case line[a.ID] == line[b.ID]:
			return 0
		case line[a.ID]:
			return -1
		}
		return 1
	})
}

// superseded reports whether f, a generation of the model to be published, needs a new number to
// become the newest generation of the job, or of its model directory if nights have directories of
// their own.
func (h *held) superseded(f *found, p *Publication) bool {
	newest := f
	for _, other := range h.of[Generation].list {
		if other.Job == p.Job && (p.Night == nil || other.Owner == p.Owner) {
			newest = other
		}
	}
	return p.Newest && newest.Identity != p.Identity && newest.Owner == p.Owner
}
