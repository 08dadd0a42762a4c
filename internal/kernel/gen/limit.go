package main

// writeLimit writes the loops that measure what a processor can do at most: fused
// multiply-adds on registers alone, and reading memory.
func writeLimit(asm, stubs *file) {
	for _, s := range []struct {
		name, reg, zero string
		accumulators    int
	}{
		{"limitFMA512", "Z", "VPXORD", 24},
		{"limitFMA256", "Y", "VXORPS", 12},
	} {
		stubs.line("")
		stubs.line("// %s does %d independent chains of n fused multiply-adds of vectors.", s.name, s.accumulators)
		stubs.line("//")
		stubs.line("//go:noescape")
		stubs.line("func %s(n int)", s.name)
		asm.line("")
		asm.line("// func %s(n int)", s.name)
		asm.line("TEXT ·%s(SB), NOSPLIT, $0-8", s.name)
		asm.op("MOVQ n+0(FP), CX")
		for i := range s.accumulators + 2 {
			asm.op("%s %s%d, %s%d, %s%d", s.zero, s.reg, i, s.reg, i, s.reg, i)
		}
		asm.op("PCALIGN $32")
		asm.line("loop:")
		for i := range s.accumulators {
			asm.op("VFMADD231PS %s%d, %s%d, %s%d", s.reg, s.accumulators, s.reg, s.accumulators+1, s.reg, i)
		}
		asm.op("DECQ CX")
		asm.op("JNZ loop")
		asm.op("VZEROUPPER")
		asm.op("RET")
	}
	stubs.line("")
	stubs.line("// limitReadAVX2 reads n elements, a multiple of 64.")
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("func limitReadAVX2(x *float32, n int)")
	asm.line("")
	asm.line("// func limitReadAVX2(x *float32, n int)")
	asm.line("TEXT ·limitReadAVX2(SB), NOSPLIT, $0-16")
	asm.op("MOVQ x+0(FP), SI")
	asm.op("MOVQ n+8(FP), CX")
	for i := range 8 {
		asm.op("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	asm.op("PCALIGN $32")
	asm.line("loop:")
	for i := range 8 {
		asm.op("VADDPS %d(SI), Y%d, Y%d", 32*i, i, i)
	}
	asm.op("ADDQ $256, SI")
	asm.op("SUBQ $64, CX")
	asm.op("JNZ loop")
	asm.op("VZEROUPPER")
	asm.op("RET")
}
