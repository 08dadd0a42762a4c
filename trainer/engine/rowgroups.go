package engine

import "aibox/trainer/optim"

// Devices find out themselves to which group of steps a row belongs: to that of the field of the last
// bag that it occurs in, as Prepare has it.

// Groups is the group of each field.
func (s *RowSteps) Groups() []int32 {
	groups := make([]int32, len(s.group))
	for f, g := range s.group {
		groups[f] = int32(g)
	}
	return groups
}

// Updates are the updates of each group, as Prepare has computed them. The slice is valid until the next call of Prepare.
func (s *RowSteps) Updates() []optim.RowStep { return s.steps }
