package kerneltest

import (
	"errors"
	"testing"

	"aibox/gpu"
)

// Kept is a kind of device of which one stays open from trial to trial, because it takes long to
// open one and to load the kernels. A broken one is replaced.
func Kept(name string, open func() (gpu.Device, error)) Subject {
	var owner gpu.Device
	var module gpu.Module
	return Subject{Name: name, Open: func(t *testing.T, _ uint64) gpu.Device {
		var err error
		if owner == nil || owner.Synchronize() != nil {
			module = nil
			if owner, err = open(); err != nil {
				t.Fatal(err)
			}
		}
		return &kept{Device: owner, module: &module}
	}}
}

// kept is a device as one trial has it. Close gives back its memory alone; streams stay.
type kept struct {
	gpu.Device
	module   *gpu.Module // of all trials; nil before it is loaded
	memories []gpu.Memory
}

func (k *kept) Alloc(name string, bytes int) (gpu.Memory, error) {
	m, err := k.Device.Alloc(name, bytes)
	if err == nil {
		k.memories = append(k.memories, m)
	}
	return m, err
}

func (k *kept) Load(image gpu.Image) (m gpu.Module, err error) {
	if *k.module == nil {
		*k.module, err = k.Device.Load(image)
	}
	return *k.module, err
}

func (k *kept) Close() error {
	err := k.Synchronize()
	for _, m := range k.memories {
		err = errors.Join(err, m.Free())
	}
	return err
}
