// Package forecast says how much memory a job will take before it runs, and compares that with what
// devices have free.
//
//	SampleData   how much data a job reads (DataSize), from the beginning of its training data;
//	             Sample if the data are listed already
//	ForHost      memory of the process by purpose (Memory); if that is too much, Memory.Excess
//	             says what to lower
//	ForDevices   memory of each device and what it has free (OnDevices, OnDevices.Fits)
//
// A forecast is an upper bound that a job reaches if its data are large enough: full queues, the
// largest mini-batch, a table that has used its budget. It is a sum of parts. A part is computed by
// the package that takes the memory if that package can (sparsetable.ForecastBytes,
// cpu.ForecastBytes, cuda.Forecast). The rest, which is what waits between the stages, the reader's
// buffers, and garbage, is computed here from DataSize.
//
// A run reports what it has taken as a Memory, too, and gets two parts that are not measured from
// DenseBytes and ReadingBytes. The package writes no file, opens no table, and opens devices only
// for a moment.
package forecast
