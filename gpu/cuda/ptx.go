package cuda

import (
	"regexp"
	"slices"

	"aibox/gpu"
)

var (
	ptxVersion = regexp.MustCompile(`(?m)^\.version\s`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?`)
	ptxParam   = regexp.MustCompile(`\.param\s+\.[busf](\d+)\s+[^\s,\[]+\s*(,|$)`)
)

// checkParams compares what an image says about its kernels with their declarations, if the code is
// PTX. It would be too late to find a difference when the kernel runs: it would use memory that
// nobody gave to it.
func checkParams(i gpu.Image) error {
	if !ptxVersion.Match(i.Code) {
		return nil
	}
	declared := map[string][]string{}
	for _, entry := range ptxEntry.FindAllSubmatch(i.Code, -1) {
		bits := []string{}
		for _, param := range ptxParam.FindAllSubmatch(entry[2], -1) {
			bits = append(bits, string(param[1]))
		}
		declared[string(entry[1])] = bits
	}
	for name, kinds := range i.Params {
		bits, ok := declared[name]
		if !ok {
			return gpu.Invalid("the code of image %q has no kernel %q", i.Name, name)
		}
		want := make([]string, len(kinds))
		for k, kind := range kinds {
			want[k] = "64"
			if kind == gpu.Int32Arg || kind == gpu.Float32Arg {
				want[k] = "32"
			}
		}
		if !slices.Equal(bits, want) {
			return gpu.Invalid("kernel %q of image %q has parameters of %v bits in its code, and of %v in Image.Params", name, i.Name, bits, want)
		}
	}
	return nil
}
