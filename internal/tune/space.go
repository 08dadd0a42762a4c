package tune

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"aibox/configs"
)

// Setting is a key of the job file with a value, as YAML.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

func (s Setting) String() string { return s.Path + "=" + s.Value }

// Dimension is what is varied together, with the values to choose from. No settings stand for the
// job as it is.
type Dimension struct {
	Name   string
	Values [][]Setting
}

// Groups of dimensions, by the names that users give.
const (
	LearningRates = "learning_rates"
	L2            = "l2"
	Sizes         = "sizes"
	Epochs        = "epochs"
)

// Groups are all groups.
var Groups = []string{LearningRates, L2, Sizes, Epochs}

// Space is what may be varied in a job, in a fixed order.
func Space(job *configs.Job, groups []string) []Dimension {
	var out []Dimension
	add := func(group, name string, values ...[]Setting) {
		if slices.Contains(groups, group) && len(values) > 0 {
			out = append(out, Dimension{name, append([][]Setting{nil}, values...)})
		}
	}
	rows, dense := &job.Optimizer.Rows, &job.Optimizer.Dense
	linear := configs.RowOptimizer{}
	if job.Optimizer.Linear != nil {
		linear = *job.Optimizer.Linear
	}
	add(LearningRates, "optimizer.rows.learning_rate", multiples("optimizer.rows.learning_rate", rows.LearningRate)...)
	add(LearningRates, "optimizer.dense.learning_rate", multiples("optimizer.dense.learning_rate", dense.LearningRate)...)
	// Averaging makes higher rates worthwhile, but on short logs the average lags behind the
	// weights (docs/quality.md).
	add(LearningRates, "optimizer.dense.averaging", others("optimizer.dense.averaging", dense.Averaging, 0, 0.98)...)
	if rows.Kind == "ftrl" {
		add(L2, "optimizer.rows.ftrl_l1", others("optimizer.rows.ftrl_l1", rows.FTRLL1, 0, 0.1, 1)...)
		add(L2, "optimizer.rows.ftrl_l2", others("optimizer.rows.ftrl_l2", rows.FTRLL2, 0, 0.1, 1, 10)...)
	} else {
		add(L2, "optimizer.rows.l2", others("optimizer.rows.l2", rows.L2, 0, 1e-6, 1e-5, 1e-4, 1e-3)...)
		// The two exclude each other, also in two optimizers; table_l2 learned better on all sets
		// (docs/quality.md).
		switch {
		case strings.HasSuffix(rows.Kind, "adagrad") && rows.WeightDecay == 0 && linear.WeightDecay == 0:
			add(L2, "optimizer.rows.table_l2", others("optimizer.rows.table_l2", rows.TableL2, 0, 1e-4, 3e-4, 1e-3)...)
		case linear.TableL2 == 0:
			add(L2, "optimizer.rows.weight_decay", others("optimizer.rows.weight_decay", rows.WeightDecay, 0, 0.01, 0.1, 0.4)...)
		}
	}
	if dense.Kind == "adamw" {
		add(L2, "optimizer.dense.weight_decay", others("optimizer.dense.weight_decay", dense.WeightDecay, 0, 0.001, 0.01, 0.1)...)
	} else {
		add(L2, "optimizer.dense.l2", others("optimizer.dense.l2", dense.L2, 0, 1e-6, 1e-5, 1e-4, 1e-3)...)
	}
	m := &job.Model
	if m.Kind != "lr" {
		add(Sizes, "model.embedding_dim", dims(m)...)
	}
	if len(m.HiddenLayers) > 0 {
		add(Sizes, "model.hidden_layers", widths("model.hidden_layers", m.HiddenLayers)...)
	}
	if len(m.Towers) > 0 {
		add(Sizes, "model.towers", towers(m, job.Given("model.towers"))...)
	}
	if m.CrossLayers > 0 {
		add(Sizes, "model.cross_layers", others("model.cross_layers", float64(m.CrossLayers), max(1, float64(m.CrossLayers)-1), float64(m.CrossLayers)+1)...)
	}
	return out
}

// factors are those by which learning rates are multiplied.
var factors = []float64{1. / 8, 1. / 4, 1. / 2, 2, 4, 8}

func multiples(path string, value float64) (out [][]Setting) {
	for _, f := range factors {
		if value*f <= 1000 { // the largest rate that a job file may have
			out = append(out, []Setting{{path, number(value * f)}})
		}
	}
	return out
}

// others are the values that are not the present one.
func others(path string, present float64, values ...float64) (out [][]Setting) {
	for _, v := range values {
		if v != present {
			out = append(out, []Setting{{path, number(v)}})
		}
	}
	return out
}

// number is x with few digits, since a file is to be read by people.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// dims are other widths of the embeddings. The last bottom layer of a dlrm has the same.
func dims(m *configs.Model) (out [][]Setting) {
	for _, d := range []int{m.EmbeddingDim / 2, m.EmbeddingDim * 2} {
		if d < 2 || d > 4096 {
			continue
		}
		s := []Setting{{"model.embedding_dim", strconv.Itoa(d)}}
		if n := len(m.BottomLayers); n > 0 {
			s = append(s, Setting{"model.bottom_layers", list(append(slices.Clone(m.BottomLayers[:n-1]), d))})
		}
		out = append(out, s)
	}
	return out
}

// scales are the factors by which widths of layers are multiplied.
var scales = []float64{0.5, 2}

func scaled(layers []int, by float64) []int {
	out := make([]int, len(layers))
	for i, w := range layers {
		out[i] = min(max(int(float64(w)*by), 1), 1<<16)
	}
	return out
}

func widths(path string, layers []int) (out [][]Setting) {
	for _, by := range scales {
		if s := scaled(layers, by); !slices.Equal(s, layers) {
			out = append(out, []Setting{{path, list(s)}})
		}
	}
	return out
}

// towers are other widths of all towers. Default towers, which the job file does not have, are
// given as a whole.
func towers(m *configs.Model, given bool) (out [][]Setting) {
	for _, by := range scales {
		var each []Setting
		var all []string
		for i, t := range m.Towers {
			layers := list(scaled(t.Layers, by))
			each = append(each, Setting{fmt.Sprintf("model.towers[%d].layers", i), layers})
			dense := make([]string, len(t.Dense))
			for j, name := range t.Dense {
				dense[j] = strconv.Quote(name)
			}
			all = append(all, fmt.Sprintf("{name: %q, dense: [%s], layers: %s}", t.Name, strings.Join(dense, ", "), layers))
		}
		if !given {
			each = []Setting{{"model.towers", "[" + strings.Join(all, ", ") + "]"}}
		}
		out = append(out, each)
	}
	return out
}

func list(widths []int) string {
	text := make([]string, len(widths))
	for i, w := range widths {
		text[i] = strconv.Itoa(w)
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// Trial is the job with some settings changed.
type Trial struct {
	ID       int // 0: the job as it is
	Settings []Setting
}

// Changes are the settings as text; "original job" if there are none.
func (t *Trial) Changes() string {
	if len(t.Settings) == 0 {
		return "original job"
	}
	text := make([]string, len(t.Settings))
	for i, s := range t.Settings {
		text[i] = s.String()
	}
	return strings.Join(text, " ")
}

// Draw draws n trials, including trial 0; fewer if the space is small. The same arguments always
// give the same trials. In each dimension, half of the trials keep the job's setting, because it
// was not chosen at random; among the others, all values occur equally often, up to one.
func Draw(space []Dimension, n int, seed uint64) []Trial {
	trials := []Trial{{}}
	seen := map[string]bool{trials[0].Changes(): true}
	for again := range uint64(8) { // some are drawn twice
		columns := make([][]int, len(space))
		for i, d := range space {
			columns[i] = column(d, n, seed+again<<32)
		}
		for j := 0; j < n && len(trials) < n; j++ {
			t := Trial{ID: len(trials)}
			for i, d := range space {
				t.Settings = append(t.Settings, d.Values[columns[i][j]]...)
			}
			if text := t.Changes(); !seen[text] {
				seen[text] = true
				trials = append(trials, t)
			}
		}
	}
	return trials
}

// column draws the values of a dimension for n trials.
func column(d Dimension, n int, seed uint64) []int {
	h := fnv.New64a()
	h.Write([]byte(d.Name))
	column := make([]int, n)
	for i := 1; i < n; i += 2 {
		column[i] = 1 + i/2%(len(d.Values)-1)
	}
	rand.New(rand.NewPCG(seed, h.Sum64())).Shuffle(n, func(a, b int) { column[a], column[b] = column[b], column[a] })
	return column
}
