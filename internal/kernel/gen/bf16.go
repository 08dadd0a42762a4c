package main

import "fmt"

// vdpbf16ps returns VDPBF16PS rm, v, d on 512-bit registers as bytes, since the assembler
// does not know it: each lane of d becomes d + v[1]·rm[1], then + v[0]·rm[0], for the pair of
// bfloat16 in the lanes of v and rm. The encoding is EVEX.512.F3.0F38.W0 52 /r.
func vdpbf16ps(rm, v, d int) string {
	not := func(x, bit int) int { return ^x >> bit & 1 }
	p0 := not(d, 3)<<7 | not(rm, 4)<<6 | not(rm, 3)<<5 | not(d, 4)<<4 | 0b010
	p1 := (^v&15)<<3 | 0b110
	p2 := 0b10<<5 | not(v, 4)<<3
	return fmt.Sprintf("LONG $0x%02x%02x%02x62; WORD $0x%02x52 // VDPBF16PS Z%d, Z%d, Z%d",
		p2, p1, p0, 0xc0|d&7<<3|rm&7, rm, v, d)
}

// Constants of the conversion to bfloat16.
const (
	bf16Bias  = "Y15" // 0x7fff: half of the last place that is kept, less one
	bf16One   = "Y14" // 1
	bf16High  = "Y13" // 0xffff0000
	bf16Quiet = "Y12" // 0x00400000
	bf16Exp   = "Y11" // 0x7f800000
	bf16Sign  = "Y10" // 0x80000000
	bf16Zero  = "Y9"
)

// writeBF16 writes the conversions to bfloat16: what VCVTNE2PS2BF16 does, in AVX2.
func writeBF16(asm, stubs *file) {
	for i, v := range []string{"00007fff", "00000001", "ffff0000", "00400000", "7f800000", "80000000"} {
		asm.line("DATA bf16Constants<>+%d(SB)/4, $0x%s", 4*i, v)
	}
	asm.line("GLOBL bf16Constants<>(SB), RODATA|NOPTR, $24")
	writeConversion(asm, stubs, "bf16RoundAVX2", "sets dst[i] to src[i] rounded to bfloat16", []string{"src"}, func() {
		asm.op("VMOVUPS (SI), Y0")
		roundBF16(asm, 0)
		asm.op("VMOVUPS Y0, (DI)")
		asm.op("ADDQ $32, SI")
	})
	writeConversion(asm, stubs, "bf16SwapAVX2", "sets dst to src rounded to bfloat16, the two numbers of each pair exchanged", []string{"src"}, func() {
		asm.op("VMOVUPS (SI), Y0")
		roundBF16(asm, 0)
		asm.op("VPERMILPS $0xb1, Y0, Y0")
		asm.op("VMOVUPS Y0, (DI)")
		asm.op("ADDQ $32, SI")
	})
	writeConversion(asm, stubs, "bf16PairsAVX2", "sets word i of dst to elements 2i and 2i+1 of src, the first in the low half", []string{"src"}, func() {
		asm.op("VMOVUPS (SI), Y0")
		asm.op("VMOVUPS 32(SI), Y1")
		roundBF16(asm, 0)
		roundBF16(asm, 1)
		asm.op("VSHUFPS $0x88, Y1, Y0, Y2") // even elements, in halves
		asm.op("VSHUFPS $0xdd, Y1, Y0, Y3") // odd ones
		asm.op("VPSRLD $16, Y2, Y2")
		asm.op("VPOR Y3, Y2, Y2")
		asm.op("VPERMQ $0xd8, Y2, Y2")
		asm.op("VMOVUPS Y2, (DI)")
		asm.op("ADDQ $64, SI")
	})
	writeConversion(asm, stubs, "bf16RowsAVX2", "sets word i of dst to lo[i] and hi[i]", []string{"lo", "hi"}, func() {
		asm.op("VMOVUPS (SI), Y0")
		asm.op("VMOVUPS (DX), Y1")
		roundBF16(asm, 0)
		roundBF16(asm, 1)
		asm.op("VPSRLD $16, Y0, Y0")
		asm.op("VPOR Y1, Y0, Y0")
		asm.op("VMOVUPS Y0, (DI)")
		asm.op("ADDQ $32, SI")
		asm.op("ADDQ $32, DX")
	})
}

// writeConversion writes a function that makes n elements of dst, a multiple of 8.
func writeConversion(asm, stubs *file, name, does string, sources []string, body func()) {
	params := "dst"
	for _, s := range sources {
		params += ", " + s
	}
	signature := fmt.Sprintf("func %s(%s *float32, n int)", name, params)
	stubs.line("")
	stubs.line("// %s %s.", name, does)
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-%d", name, 8*(len(sources)+2))
	asm.op("MOVQ dst+0(FP), DI")
	for i, s := range sources {
		asm.op("MOVQ %s+%d(FP), %s", s, 8*(i+1), pointerRegs[i+1])
	}
	asm.op("MOVQ n+%d(FP), CX", 8*(len(sources)+1))
	for i, r := range []string{bf16Bias, bf16One, bf16High, bf16Quiet, bf16Exp, bf16Sign} {
		asm.op("VPBROADCASTD bf16Constants<>+%d(SB), %s", 4*i, r)
	}
	asm.op("VPXOR %s, %s, %s", bf16Zero, bf16Zero, bf16Zero)
	asm.line("loop:")
	body()
	asm.op("ADDQ $32, DI")
	asm.op("SUBQ $8, CX")
	asm.op("JNE loop")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// roundBF16 rounds register Yi to bfloat16 in the high halves; Y4 to Y8 are scratch.
func roundBF16(asm *file, i int) {
	x := fmt.Sprintf("Y%d", i)
	// To nearest, ties to even: add half of the last place, less one if that place is even.
	asm.op("VPSRLD $16, %s, Y4", x)
	asm.op("VPAND %s, Y4, Y4", bf16One)
	asm.op("VPADDD %s, Y4, Y4", bf16Bias)
	asm.op("VPADDD %s, Y4, Y4", x)
	// NaN becomes quiet.
	asm.op("VPOR %s, %s, Y5", bf16Quiet, x)
	asm.op("VCMPPS $3, %s, %s, Y6", x, x)
	asm.op("VBLENDVPS Y6, Y5, Y4, Y4")
	asm.op("VPAND %s, Y4, Y4", bf16High)
	// A denormal number becomes a zero.
	asm.op("VPAND %s, %s, Y5", bf16Exp, x)
	asm.op("VPCMPEQD %s, Y5, Y5", bf16Zero)
	asm.op("VPAND %s, %s, Y6", bf16Sign, x)
	asm.op("VBLENDVPS Y5, Y6, Y4, %s", x)
}
