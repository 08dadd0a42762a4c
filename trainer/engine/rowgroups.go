package engine

import "aibox/trainer/optim"

// Devices find out themselves to which group of steps a row belongs: to that of the field of the last
// bag that it occurs in, as Prepare has it.

// AppendGroups appends the group of each field.
func (s *RowSteps) AppendGroups(groups []int32) []int32 {
	for _, g := range s.group {
		groups = append(groups, int32(g))
	}
	return groups
}

// PrepareGroups is Prepare without what Of needs.
func (s *RowSteps) PrepareGroups(rows *optim.Rows, t int64, scale float32) {
	for g, began := range s.groups {
		s.steps[g] = rows.Step(t-began, scale)
	}
}

// Updates are the updates of each group, as Prepare or PrepareGroups has computed them. The slice is valid until the next call.
func (s *RowSteps) Updates() []optim.RowStep { return s.steps }
