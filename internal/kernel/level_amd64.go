package kernel

import "golang.org/x/sys/cpu"

// bestLevel is the highest level of this processor.
var bestLevel = detect()

func detect() int32 {
	switch {
	case !cpu.X86.HasAVX2 || !cpu.X86.HasFMA:
		return levelPortable
	case !cpu.X86.HasAVX512F:
		return levelAVX2
	}
	return levelAVX512
}
