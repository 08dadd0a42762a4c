package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"aibox/configs"
	"aibox/gpu"
	gpucuda "aibox/gpu/cuda"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/jobparts"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// DeviceMemory is a physical device that the engine of a job uses, with its memory.
type DeviceMemory struct {
	Number      int
	Times       int // how often engine.devices names it
	Name        string
	Free, Total int64 // bytes, after the driver has taken its share for the program

	productBytes int64 // needed to multiply matrices
}

// OnDevices is the memory that the engine of a job takes of its devices.
type OnDevices struct {
	Examples int        // in a mini-batch
	Of       int        // number of devices that engine.devices names
	Needs    cuda.Needs // without Products if Absent
	Rows     bool       // the rows of a pass take part of the remaining memory
	Devices  []DeviceMemory
	Absent   error // why the memory of the devices is unknown

	needs func(examples int) cuda.Needs // for mini-batches of that many examples
}

// ForDevices returns what a job takes of the devices that compute its network, or nil if it uses
// the host's processors. It opens the devices for a moment to see how much memory is free.
func ForDevices(job *configs.Job, size DataSize) (*OnDevices, error) {
	return forDevices(job, size, gpucuda.Open)
}

func forDevices(job *configs.Job, size DataSize, open func() (gpu.Platform, error)) (*OnDevices, error) {
	if job.Engine.Kind != "cuda" {
		return nil, nil
	}
	p, err := jobparts.Make(job)
	if err != nil {
		return nil, err
	}
	m, dense, err := outline(job, p.Spec)
	if err != nil {
		return nil, err
	}
	f := &OnDevices{Examples: size.batch(job), Of: len(job.Engine.Devices), Rows: job.Engine.Embeddings == "device"}
	platform, err := open()
	if err == nil {
		f.Devices, err = DevicesOf(platform, job)
	}
	var absent *gpu.Error
	if errors.As(err, &absent) && absent.Kind == gpu.WrongDriver {
		f.Absent, err = err, nil
	}
	productBytes := int64(0)
	for _, d := range f.Devices {
		productBytes = max(productBytes, d.productBytes)
	}
	f.needs = func(examples int) cuda.Needs { return deviceNeeds(job, &p, m, dense, examples, productBytes) }
	f.Needs = f.needs(f.Examples)
	return f, err
}

// deviceNeeds returns what the engine of a job takes for mini-batches of the given number of
// examples, on devices that need productBytes to multiply matrices.
func deviceNeeds(job *configs.Job, p *jobparts.Parts, m *model.Model, dense *optim.Dense, examples int, productBytes int64) cuda.Needs {
	c := engine.Config{Network: m.Network(), Precision: p.Precision, Layout: p.Layout, Rows: p.Rows, Schedule: p.Schedule}
	return cuda.Forecast(c, &engine.State{Dense: dense}, len(job.Engine.Devices), examples, job.Engine.Embeddings == "device", productBytes)
}

// DevicesOf inspects the devices that a job names, each once, in the order of their first mention.
func DevicesOf(p gpu.Platform, job *configs.Job) (list []DeviceMemory, err error) {
	infos := p.Devices()
	for _, number := range job.Engine.Devices {
		if number >= len(infos) {
			return nil, errkind.Errorf(errkind.Job, "engine.devices: there is no device %d: %s has %s", number, p.Name(), humanize.Count(int64(len(infos)), "device"))
		}
		if at := slices.IndexFunc(list, func(d DeviceMemory) bool { return d.Number == number }); at >= 0 {
			list[at].Times++
			continue
		}
		d := DeviceMemory{Number: number, Times: 1, Name: infos[number].Name, productBytes: infos[number].ProductBytes}
		if d.Free, d.Total, err = freeMemoryOf(p, number); err != nil {
			return nil, fmt.Errorf("engine.devices: %w", err)
		}
		list = append(list, d)
	}
	return list, nil
}

// freeMemoryOf opens a device for a moment.
func freeMemoryOf(p gpu.Platform, number int) (free, total int64, err error) {
	dev, err := p.Open(number)
	if err != nil {
		return 0, 0, err
	}
	free, total, err = dev.FreeMemory()
	return free, total, errors.Join(err, dev.Close())
}

// largestShortage returns the device that is shortest of memory, and by how much, if engines need n.
func (f *OnDevices) largestShortage(n cuda.Needs) (DeviceMemory, int64) {
	short := func(d DeviceMemory) int64 { return int64(d.Times)*n.Device() - d.Free }
	d := slices.MaxFunc(f.Devices, func(a, b DeviceMemory) int { return cmp.Compare(short(a), short(b)) })
	return d, short(d)
}

// Fits returns an error if a device has less free memory than the engine takes. It describes the
// device that is shortest of memory, and says what to change.
func (f *OnDevices) Fits() error {
	if len(f.Devices) == 0 {
		return nil
	}
	d, short := f.largestShortage(f.Needs)
	if short <= 0 {
		return nil
	}
	var advice []string
	if cuda.Crowded(d.Free, d.Total) {
		advice = append(advice, "free what other programs have of it (nvidia-smi names them)")
	}
	if fits := sort.Search(f.Examples, func(n int) bool { _, short := f.largestShortage(f.needs(n + 1)); return short > 0 }); fits > 0 {
		advice = append(advice, fmt.Sprintf("make training.batch_size smaller (%d fits)", fits), "divide the mini-batch among more engine.devices")
	}
	if d.Times > 1 {
		advice = append(advice, "name the device only once in engine.devices")
	}
	advice = append(advice, fewerLayers)
	if short <= int64(d.Times)*(f.Needs.Optimizer+f.Needs.Averages) {
		advice = append(advice, "take an optimizer.dense that keeps less per parameter")
	}
	wanted := d.Free + short
	return errkind.Errorf(errkind.Job, "engine.devices: device %d has %s of its %s free, the engine takes %s (%d bytes of %d free): %s",
		d.Number, humanize.Bytes(d.Free), humanize.Bytes(d.Total), humanize.Bytes(wanted), wanted, d.Free, strings.Join(advice, ", or "))
}
