package trainer

import (
	"slices"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/modeldir"
	"aibox/trainer/optim"
)

// rowSteps counts the steps that the rows of each embedding space have taken with
// their optimizer state, for row optimizers that need this number (Adam). All rows of
// a space share one number, as in PyTorch, where a table has one for all of its rows.
// It equals the model's number of steps, except for spaces that a warm start has
// added, or for all spaces if a warm start has changed rows or their optimizer.
type rowSteps struct {
	spaces []string // of each field
	began  []int64  // of each field: the model's step at which its current optimizer state began

	// Fields with the same number make a group.
	groups []int64  // began of each group
	group  []uint16 // of each field

	steps []optim.RowStep // of each group, for the current mini-batch
	rowOf []uint16        // (U) group of each row of the mini-batch; unused with one group
}

// newRowSteps counts steps for fields that have the given embedding spaces.
func newRowSteps(spaces []string) *rowSteps {
	s := &rowSteps{spaces: spaces, began: make([]int64, len(spaces))}
	s.regroup()
	return s
}

// spacesOf returns the embedding space of each field of a job.
func spacesOf(job *configs.Job, fields []string) []string {
	spaces := slices.Clone(fields)
	for _, c := range job.SparseColumns() {
		if i := slices.Index(fields, c.Name); i >= 0 {
			spaces[i] = or(c.Space, c.Name)
		}
	}
	return spaces
}

func (s *rowSteps) regroup() {
	s.groups, s.group = s.groups[:0], s.group[:0]
	for _, b := range s.began {
		g := slices.Index(s.groups, b)
		if g < 0 {
			g = len(s.groups)
			s.groups = append(s.groups, b)
		}
		s.group = append(s.group, uint16(g))
	}
	s.steps = make([]optim.RowStep, len(s.groups))
}

// prepare computes the updates of b's rows in step t, which of returns. A row that
// several spaces share, because their keys collide, uses the number of one of them.
func (s *rowSteps) prepare(b *reader.Batch, rows *optim.Rows, t int64, scale float32) {
	for g, began := range s.groups {
		s.steps[g] = rows.Step(t-began, scale)
	}
	if len(s.groups) == 1 {
		return
	}
	s.rowOf = slices.Grow(s.rowOf[:0], len(b.Rows))[:len(b.Rows)]
	bag := 0
	for range b.N {
		for _, g := range s.group {
			for _, r := range b.Index[b.Offsets[bag]:b.Offsets[bag+1]] {
				s.rowOf[r] = g
			}
			bag++
		}
	}
}

// of returns the update of row i of the mini-batch.
func (s *rowSteps) of(i int) *optim.RowStep {
	if len(s.groups) == 1 {
		return &s.steps[0]
	}
	return &s.steps[s.rowOf[i]]
}

// The dense file has the number of steps of a space as a tensor of one value, named
// "rows/" space "/step". Spaces whose number equals the model's have no such tensor.
const (
	rowStepPrefix = "rows/"
	rowStepSuffix = "/step"
)

// tensors are the numbers of steps after step t.
func (s *rowSteps) tensors(rows *optim.Rows, t int64) []modeldir.Tensor {
	var out []modeldir.Tensor
	if !rows.HasSteps() {
		return nil
	}
	for i, space := range s.spaces {
		n := t - s.began[i]
		if s.began[i] == 0 || rows.Settled(n) || slices.Contains(s.spaces[:i], space) {
			continue
		}
		out = append(out, modeldir.Tensor{Name: optimizerPrefix + rowStepPrefix + space + rowStepSuffix, Shape: []int{1}, Data: []float32{optim.StepCount(n)}})
	}
	return out
}

// takeOver continues the numbers of an earlier model, whose dense tensors are saved
// and which had taken t steps, for the spaces that it has; other spaces begin at 0.
func (s *rowSteps) takeOver(saved map[string]modeldir.Tensor, has func(space string) bool, t int64) {
	for i, space := range s.spaces {
		name := optimizerPrefix + rowStepPrefix + space + rowStepSuffix
		switch steps, ok := saved[name]; {
		case !has(space):
			s.began[i] = t
		case ok && len(steps.Data) == 1:
			s.began[i] = t - int64(steps.Data[0])
		default:
			s.began[i] = 0
		}
	}
	s.regroup()
}
