package cuda

import (
	"regexp"
	"slices"
	"strconv"

	"aibox/gpu"
)

var (
	ptxVersion = regexp.MustCompile(`(?m)^\.version\s`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?`)
	ptxParam   = regexp.MustCompile(`\.param\s+\.[busf](\d+)\s+[^\s,\[]+\s*(,|$)`)
)

// parameters returns the sizes in bits of each kernel's parameters, by what PTX declares; nil if the
// code is no PTX.
func parameters(code []byte) map[string][]int {
	if !ptxVersion.Match(code) {
		return nil
	}
	declared := map[string][]int{}
	for _, entry := range ptxEntry.FindAllSubmatch(code, -1) {
		bits := []int{}
		for _, param := range ptxParam.FindAllSubmatch(entry[2], -1) {
			n, _ := strconv.Atoi(string(param[1]))
			bits = append(bits, n)
		}
		declared[string(entry[1])] = bits
	}
	return declared
}

// sizes returns the sizes of arguments in bits.
func sizes(kinds []gpu.ArgKind) []int {
	bits := make([]int, len(kinds))
	for i, k := range kinds {
		bits[i] = size(k)
	}
	return bits
}

// size returns the size of an argument in bits.
func size(k gpu.ArgKind) int {
	if k == gpu.Int32Arg || k == gpu.Float32Arg {
		return 32
	}
	return 64
}

// checkParams compares an image's Params with the declarations in its code, if that is PTX.
// Detecting a difference when the kernel runs would be too late: it would already access wrong
// memory.
func checkParams(i gpu.Image, declared map[string][]int) error {
	if declared == nil {
		return nil
	}
	for name, kinds := range i.Params {
		bits, ok := declared[name]
		if !ok {
			return gpu.Invalid("the code of image %q has no kernel %q", i.Name, name)
		}
		if want := sizes(kinds); !slices.Equal(bits, want) {
			return gpu.Invalid("kernel %q of image %q has parameters of %v bits in its code, and of %v in Image.Params", name, i.Name, bits, want)
		}
	}
	return nil
}
