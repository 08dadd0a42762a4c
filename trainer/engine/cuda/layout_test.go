package cuda_test

import (
	"testing"

	"aibox/gpu/kernels"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/program"
)

// TestMostExamples: kernels can number the elements of what enters a layer, with the columns behind
// it that are padding in bfloat16, also where that is the dense features.
func TestMostExamples(t *testing.T) {
	buffer := func(source program.Source, columns int) *program.Program {
		return &program.Program{Buffers: []program.Buffer{{Source: source, Rows: program.Examples, Columns: columns}}}
	}
	for _, c := range []struct {
		source        program.Source
		columns, wide int
	}{{program.Inner, 2041, 2048}, {program.Inner, 2048, 2048}, {program.Dense, 3001, 3008}, {program.Param, 3001, 8}} {
		net := &program.Network{Train: buffer(c.source, c.columns), Infer: buffer(program.Inner, 1)}
		if got, want := cuda.MostExamples(net, 2), kernels.MostElements/c.wide*2; got != want {
			t.Errorf("%+v: %d examples, want %d", c, got, want)
		}
	}
}
