package optim

import "testing"

// TestGroups: updates of a group are the same in every step; those of different configurations, or
// with a state that began after another step, are not of the same group.
func TestGroups(t *testing.T) {
	own := RowConfig{Kind: "adam", LearningRate: 0.3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
	other := own
	other.Epsilon = 1e-4
	for name, cfg := range denseConfigs {
		var params []*Param
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			params = append(params, param(name, make([]float32, 6)))
		}
		d, err := NewDense(cfg, params, Own{"b", own}, Own{"d", other}, Own{"e", own})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []int{0, 1, 0, 2, 1, 0} {
			if got := d.Config(i); got != want {
				t.Errorf("%s: configuration %d of parameter %s, want %d", name, got, params[i].Name, want)
			}
		}
		d.Begin(4, []int64{0, 0, 0, 2, 2, 2})
		d.Begin(5, []int64{2, 2, 2, 2, 2, 2})
		groups := 4 // three configurations, and values of e that began later
		if hasSteps(cfg.Kind) {
			groups++ // f, too
		}
		for step := int64(3); step < 30; step++ {
			of := map[Group]Update{}
			for _, u := range d.Updates(step, 1/float32(step)) {
				first, ok := of[u.Group]
				if !ok {
					of[u.Group], first = u, u
				}
				if u.Update != first.Update {
					t.Errorf("%s: step %d updates %s by %+v and %s, of the same group, by %+v", name, step, params[u.Param].Name, u, params[first.Param].Name, first)
				}
			}
			if len(of) != groups {
				t.Errorf("%s: %d groups in step %d, want %d: %v", name, len(of), step, groups, of)
			}
		}
	}
}
