package forecast

import (
	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// outline makes the network of a job and its optimizer without allocating their memory.
func outline(job *configs.Job, spec model.Spec) (*model.Model, *optim.Dense, error) {
	m, err := model.Outline(spec)
	if err != nil {
		return nil, nil, errkind.As(errkind.Job, err)
	}
	dense, err := jobparts.NewDense(job, m.Params())
	return m, dense, err
}

// DenseBytes returns the memory of the dense parameters with gradients and optimizer state.
func DenseBytes(m *model.Model, d *optim.Dense) int64 {
	n, each := int64(0), 2 // values and gradients
	if d.Averages() {
		each++
	}
	for i, p := range m.Params() {
		n += 4 * int64(p.Size()) * int64(each+len(d.Slots(i)))
	}
	for _, p := range m.Buffers() {
		n += 4 * int64(p.Size())
	}
	return n
}

// savedBytes returns the size of the copy of the dense part that a snapshot makes.
func savedBytes(m *model.Model, d *optim.Dense) int64 {
	n := DenseBytes(m, d)
	for _, p := range m.Params() {
		n -= 4 * int64(p.Size())
	}
	return n
}

// DenseFits returns an error if the dense part of a job alone takes more than free, the memory that
// the process can have before Linux kills it; a negative number means unknown. Such a job would be
// killed, or ended by Go's runtime, while its parameters are made.
func DenseFits(job *configs.Job, spec model.Spec, free int64) error {
	m, dense, err := outline(job, spec)
	if err != nil {
		return err
	}
	need := DenseBytes(m, dense)
	if free < 0 || need <= free {
		return nil
	}
	params := int64(0)
	for _, p := range m.Params() {
		params += int64(p.Size())
	}
	return errkind.Errorf(errkind.Job, "model: the network has %s, which take %s of memory with their gradients and the state of optimizer.dense, and %s is free: %s, or let the job have more memory",
		humanize.Count(params, "parameter"), humanize.Bytes(need), humanize.Bytes(free), fewerLayers)
}

// fewerLayers is advice to make the dense part smaller.
const fewerLayers = "make the layers of the model fewer or narrower"
