package emulated

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"unsafe"

	"aibox/gpu"
)

// limits are the launch limits in a kernel's code, if that is PTX: a device refuses launches beyond
// them.
type limits struct {
	threads int // that a block may have (__launch_bounds__); 0: any number
	shared  int // bytes of shared memory that a block takes, whatever the launch asks for
}

var (
	ptxEntry  = regexp.MustCompile(`\.entry\s+([\w$]+)`)
	ptxEnd    = []byte("\n}\n")
	ptxLimit  = regexp.MustCompile(`\.maxntid\s+(\d+),\s*(\d+),\s*(\d+)`)
	ptxShared = regexp.MustCompile(`\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\]`)
)

// known caches the limits of loaded code by the address of its first byte: parsing the code takes
// long, and tests open many devices.
var known sync.Map

// limitsOf returns those of each kernel.
func limitsOf(code []byte) map[string]limits {
	if l, ok := known.Load(unsafe.SliceData(code)); ok {
		return l.(map[string]limits)
	}
	sizes := map[string]int{} // of variables in shared memory
	for _, v := range ptxShared.FindAllSubmatch(code, -1) {
		sizes[string(v[1])] = atoi(v[2])
	}
	all := map[string]limits{}
	for _, at := range ptxEntry.FindAllSubmatchIndex(code, -1) {
		var l limits
		body, _, _ := bytes.Cut(code[at[0]:], ptxEnd)
		if n := ptxLimit.FindSubmatch(body); n != nil {
			l.threads = atoi(n[1]) * atoi(n[2]) * atoi(n[3])
		}
		for name, bytesOf := range sizes {
			if bytes.Contains(body, []byte(name)) {
				l.shared += bytesOf
			}
		}
		all[string(code[at[2]:at[3]])] = l
	}
	known.Store(unsafe.SliceData(code), all)
	return all
}

func atoi(b []byte) int {
	n, _ := strconv.Atoi(string(b)) // digits
	return n
}

// check returns an InvalidArgument for a launch that the limits do not allow.
func (l limits) check(i gpu.Info, g gpu.Geometry) error {
	if n := g.Block.Count(); l.threads > 0 && n > l.threads {
		return gpu.Invalid("blocks of %+v threads: the kernel is compiled for %d", g.Block, l.threads)
	}
	if n := l.shared + g.SharedBytes; n > i.SharedBytes {
		return gpu.Invalid("%d bytes of shared memory for each block, of which the kernel declares %d: the device has %d", n, l.shared, i.SharedBytes)
	}
	return nil
}
