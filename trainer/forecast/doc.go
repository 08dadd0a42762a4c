// Package forecast says how much memory a job will take before it runs, and compares it with what
// devices have free.
//
//	SampleData    how much data a job reads, from the beginning of its training data (DataSize); Sample, where they are listed already
//	ForHost       memory of the process, by purpose (Memory), and where that is more than there is, what to lower (its method Excess)
//	ForDevices    memory of each device, and what it has free (OnDevices, and its method Fits)
//
// A forecast is an upper bound that a job reaches when its data are large enough: full queues, the
// largest mini-batch, a table that has used its budget. It is a sum of parts, each computed where
// the memory is taken as far as that package can say it (sparsetable.ForecastBytes,
// cpu.ForecastBytes, cuda.Forecast); the rest, which is what waits between the stages, what the
// reader has in hand, and garbage, is computed here from DataSize.
//
// A run reports what it has taken as Memory, too, and asks DenseBytes and ReadingBytes for two
// parts that nobody counts. No file is written, no table is opened, and devices are opened for a
// moment only.
package forecast
