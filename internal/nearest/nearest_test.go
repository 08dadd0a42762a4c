package nearest

import "testing"

func TestNearest(t *testing.T) {
	keys := []string{"learning_rate", "kind", "beta1", "beta2", "l2", "epsilon"}
	for name, want := range map[string]string{
		"lerning_rate": "learning_rate", "learningRate": "learning_rate", "learning-rate": "learning_rate", "LEARNING_RATE": "learning_rate",
		"leanring_rate": "learning_rate", "knid": "kind", "beta3": "beta1", "eps": "", "x": "", "": "", "rate": "", "L2": "l2", "momentum": "",
	} {
		if have := Name(name, keys); have != want {
			t.Errorf("%q: nearest is %q, want %q", name, have, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"kitten", "sitting", 3}, {"dlmr", "dlrm", 1}} {
		if have := editDistance(c.a, c.b); have != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, have, c.want)
		}
		if have := editDistance(c.b, c.a); have != c.want {
			t.Errorf("%q %q: %d, want %d", c.b, c.a, have, c.want)
		}
	}
}
