package model

import (
	"runtime"
	"testing"

	"aibox/internal/splitmix"
	"aibox/trainer/engine"
)

// golden is the state of every model after two steps on hashedInputs, as
// digests. They are the same for every processor and compiler: a digest that
// differs on one of them means that some arithmetic is not fixed, most likely
// x*y + z without a conversion around the product. A digest that changes
// everywhere means that models trained before cannot be reproduced any more;
// say so in the changelog.
var golden = map[string]string{
	"aibox embeddings":    "1fac9cd15eab5e0f",
	"aibox norm dropout":  "33f8b2b6d3b2c276",
	"aibox one tower":     "5c8bc7006c5a83b6",
	"aibox":               "cd66b08bc0a23811",
	"dcn alone":           "a125c2cad7b1971f",
	"dcn stacked":         "2f88e91c6b89e310",
	"dcn":                 "e2a1254ff1e45f8a",
	"dcn_v2 no dense":     "1d867eff6759b7cc",
	"dcn_v2 rank stacked": "0f72dbb9e8c07fb6",
	"dcn one column":      "b10a8d4432b513d2",
	"dcn_v2":              "ae8245ff88874c6d",
	"deepfm leaky mean":   "305879feb873f330",
	"deepfm mixed":        "14baa32e407706bd",
	"deepfm vectors":      "87ffde2e2ed08d5b",
	"deepfm":              "4d3868149661d553",
	"dlrm no dense":       "6f598619f02c30e8",
	"dlrm norm dropout":   "20a8b40dbc563ab8",
	"dlrm":                "7ba734479741947f",
	"fm dense vectors":    "faa83a4131a1ccf3",
	"fm no dense":         "f0ba600cb2346db2",
	"fm":                  "1a3ba0f14dc48538",
	"lr mean no dense":    "3d78191c70aa071a",
	"lr":                  "e2caca9fa13165a3",
	"wide_deep dropout":   "80f0e7ed989dc59b",
	"wide_deep no dense":  "48fd19deb9624435",
	"wide_deep norm":      "9dd13e442e41789d",
	"wide_deep relu":      "356974a0a1108d4e",
	"wide_deep":           "0efb1545fc4a2625",
}

// hashedInputs draws a mini-batch from hashes alone: math/rand's normal
// numbers are not the same bits on every processor.
func hashedInputs(spec Spec, n, rows int) *Inputs {
	var at uint64
	next := func(limit uint64) uint64 { at++; return splitmix.Next(at) % limit }
	unit := func() float32 { return float32(int(next(2048))-1024) / 1024 }
	in := &Inputs{N: n, Offsets: []int32{0}, Step: 3}
	for range rows * spec.RowDim() {
		in.Rows = append(in.Rows, unit())
	}
	for range n * len(spec.Fields) {
		for range next(4) {
			in.Index = append(in.Index, int32(next(uint64(rows))))
			in.BagWeights = append(in.BagWeights, 1.5+unit())
		}
		in.Offsets = append(in.Offsets, int32(len(in.Index)))
	}
	for range n * len(spec.Dense) {
		in.Dense = append(in.Dense, unit())
	}
	for range n {
		in.Labels = append(in.Labels, float32(next(2)))
		in.Weights = append(in.Weights, 1.5+unit())
	}
	return in
}

// goldenBF16 is golden in bfloat16.
var goldenBF16 = map[string]string{
	"aibox":               "d8891d4384879bbe",
	"aibox embeddings":    "94e8a492085639a0",
	"aibox norm dropout":  "71afe59d2adf2a47",
	"aibox one tower":     "52a305affcf44dce",
	"dcn":                 "7e457a24c8bca580",
	"dcn alone":           "a125c2cad7b1971f",
	"dcn stacked":         "737290b821079fe2",
	"dcn one column":      "c860731e0ea6a64e",
	"dcn_v2":              "e54e8320e29408b2",
	"dcn_v2 no dense":     "cc7eff639acbbae0",
	"dcn_v2 rank stacked": "9a3b8ba7c845b886",
	"deepfm":              "21e1985b18ccc05d",
	"deepfm leaky mean":   "7e8bce48354f5c24",
	"deepfm mixed":        "6a0a4a45cf59e584",
	"deepfm vectors":      "4eac5d4b1769db1c",
	"dlrm":                "d17f258ea5e5a735",
	"dlrm no dense":       "bc4df9f1844ca3be",
	"dlrm norm dropout":   "4fd756f12188356e",
	"fm":                  "1a3ba0f14dc48538",
	"fm dense vectors":    "faa83a4131a1ccf3",
	"fm no dense":         "f0ba600cb2346db2",
	"lr":                  "e2caca9fa13165a3",
	"lr mean no dense":    "3d78191c70aa071a",
	"wide_deep":           "4083fe407439b802",
	"wide_deep dropout":   "69990ca178e0ee2c",
	"wide_deep no dense":  "989df22c76ed05ac",
	"wide_deep norm":      "66749fb6596d5ea0",
	"wide_deep relu":      "e85a55f8c2a509de",
}

func TestGolden(t *testing.T) { eachPrecision(t, testGolden) }

func testGolden(t *testing.T) {
	want := golden
	if precision == engine.BF16 {
		want = goldenBF16
	}
	for name, spec := range Examples() {
		spec = wide(spec)
		m := mustNew(t, spec)
		in := hashedInputs(spec, 37, 25)
		var got string
		for range 2 {
			res, err := m.Train(in)
			if err != nil {
				t.Fatal(err)
			}
			got = state(m, res)[:16]
			descend(m, in, res, 0.25)
			in.Step++
		}
		if got != want[name] {
			t.Errorf("%q: %q, // on %s the golden digest is %q", name, got, runtime.GOARCH, want[name])
		}
	}
}
