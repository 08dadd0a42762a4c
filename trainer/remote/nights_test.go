package remote

import (
	"encoding/json"
	"slices"
	"testing"
)

// nightIn returns the night from the Model of a generation of these tests.
func nightIn(m *Manifest) string {
	var model struct{ Night string }
	if err := json.Unmarshal(m.Model, &model); err != nil {
		return ""
	}
	return model.Night
}

// TestByNight checks that the latest night comes first, however often earlier ones were published
// since. In a directory with a rollback, that is the night to which it went back.
func TestByNight(t *testing.T) {
	generation := func(number int, owner, night string) *Manifest {
		return &Manifest{Number: number, Owner: owner, Model: json.RawMessage(`{"night":"` + night + `"}`)}
	}
	for name, c := range map[string]struct {
		all  []*Manifest // the newest first
		want []int
	}{
		"in order":            {[]*Manifest{generation(3, "c", "c"), generation(2, "b", "b"), generation(1, "a", "a")}, []int{3, 2, 1}},
		"an early one again":  {[]*Manifest{generation(4, "a", "a"), generation(3, "c", "c"), generation(2, "b", "b"), generation(1, "a", "a")}, []int{3, 2, 4, 1}},
		"from two machines":   {[]*Manifest{generation(4, "y/b", "b"), generation(3, "x/b", "b"), generation(2, "x/a", "a")}, []int{4, 3, 2}},
		"a directory's month": {[]*Manifest{generation(4, "11", "11-02"), generation(3, "11", "11-03"), generation(2, "11", "11-02"), generation(1, "10", "10-31")}, []int{4, 3, 2, 1}},
		"a month twice":       {[]*Manifest{generation(4, "y/11", "11-02"), generation(3, "x/11", "11-03"), generation(2, "x/11", "11-02"), generation(1, "x/11", "11-01")}, []int{3, 2, 1, 4}},
		"gone back":           {[]*Manifest{generation(3, "b", "a"), generation(2, "b", "b"), generation(1, "a", "a")}, []int{3, 2, 1}},
		"without a night":     {[]*Manifest{generation(3, "c", ""), generation(2, "b", "b"), generation(1, "a", "")}, []int{2, 3, 1}},
	} {
		var got []int
		ByNight(c.all, nightIn)
		for _, m := range c.all {
			got = append(got, m.Number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
