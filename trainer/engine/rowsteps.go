package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"aibox/trainer/optim"
)

// RowSteps counts the steps that the rows of each embedding space have taken with their optimizer
// state, for row optimizers that need this number (Adam). All rows of a space share one number, as
// in PyTorch, where a table has one for all of its rows. It equals the model's number of steps,
// except for spaces that a warm start has added, or for all spaces if a warm start has changed rows
// or their optimizer.
type RowSteps struct {
	spaces []string // of each field
	began  []int64  // of each field: the model's step when its current optimizer state began

	// Fields whose state began at the same step form a group.
	groups []int64  // began of each group
	group  []uint16 // of each field

	steps []optim.RowStep // of each group, for the current step
}

// NewRowSteps counts steps for fields that have the given embedding spaces.
func NewRowSteps(spaces []string) *RowSteps {
	s := &RowSteps{spaces: spaces, began: make([]int64, len(spaces))}
	s.regroup()
	return s
}

func (s *RowSteps) regroup() {
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

// Prepare computes the row updates of step t, which Of and Updates return.
func (s *RowSteps) Prepare(rows *optim.Rows, t int64, scale float32) {
	for g, began := range s.groups {
		s.steps[g] = rows.Step(t-began, scale)
	}
}

// Of returns the update of a row that occurs in a field. If several spaces share the row because
// their keys collide, field is that of its last bag in the mini-batch.
func (s *RowSteps) Of(field int) *optim.RowStep { return &s.steps[s.group[field]] }

// Updates returns the update of each group. The slice is valid until the next call of Prepare.
func (s *RowSteps) Updates() []optim.RowStep { return s.steps }

// AppendGroups appends the group of each field.
func (s *RowSteps) AppendGroups(groups []int32) []int32 {
	for _, g := range s.group {
		groups = append(groups, int32(g))
	}
	return groups
}

// The optimizer state stores the number of steps of a space as a tensor of one value, named "rows/"
// space "/step". Spaces whose number equals the model's have none.

// Steps returns these tensors after step t of the model.
func (s *RowSteps) Steps(rows *optim.Rows, t int64) []optim.StateTensor {
	var out []optim.StateTensor
	if !rows.HasSteps() {
		return nil
	}
	for i, space := range s.spaces {
		n := t - s.began[i]
		if s.began[i] == 0 || rows.Settled(n) || slices.Contains(s.spaces[:i], space) {
			continue
		}
		out = append(out, optim.StateTensor{Name: rowStepsName(space), Data: []float32{optim.StepCount(n)}})
	}
	return out
}

// TakeOver continues the numbers of an earlier model, which had taken t steps, for the spaces that
// it has; other spaces begin at 0. So does a space that was removed and has come back, whose rows
// still have moments: its updates are about 0.15 to 0.3 times as large as before, until the count
// has grown. saved returns a tensor of the earlier optimizer's state by name, or nil.
func (s *RowSteps) TakeOver(saved func(name string) []float32, has func(space string) bool, t int64) {
	for i, space := range s.spaces {
		s.began[i] = 0
		if !has(space) {
			s.began[i] = t
		} else if steps := saved(rowStepsName(space)); len(steps) == 1 {
			s.began[i] = t - int64(steps[0])
		}
	}
	s.regroup()
}

func rowStepsName(space string) string { return "rows/" + space + "/step" }

// MarshalJSON writes the step at which the state of each field's rows began.
func (s *RowSteps) MarshalJSON() ([]byte, error) { return json.Marshal(s.began) }

// UnmarshalJSON reads what MarshalJSON wrote for the same fields.
func (s *RowSteps) UnmarshalJSON(b []byte) error {
	var began []int64
	if err := json.Unmarshal(b, &began); err != nil {
		return err
	}
	if len(began) != len(s.spaces) {
		return fmt.Errorf("engine: steps of %d fields for %d", len(began), len(s.spaces))
	}
	s.began = began
	s.regroup()
	return nil
}
