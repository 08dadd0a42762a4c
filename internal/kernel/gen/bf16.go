package main

import "fmt"

// vdpbf16ps returns VDPBF16PS rm, v, d on 512-bit registers as bytes, since the assembler
// does not know it: each lane of d becomes d + v[1]·rm[1], then + v[0]·rm[0], for the pair of
// bfloat16 in the lanes of v and rm.
func vdpbf16ps(rm, v, d int) string { return evex("VDPBF16PS", 0xf3, 0x52, rm, v, d) }

// vcvtne2ps2bf16 returns VCVTNE2PS2BF16 Z0, v, Z2 on 512-bit registers as bytes: the low half of Z2
// becomes the lanes of Z0, rounded to bfloat16, and the high half those of v.
func vcvtne2ps2bf16(v int) string { return evex("VCVTNE2PS2BF16", 0xf2, 0x72, 0, v, 2) }

// evex returns an instruction on 512-bit registers with the encoding EVEX.512.prefix.0F38.W0 opcode
// /r as bytes; prefix is 0xf3 or 0xf2.
func evex(name string, prefix, opcode, rm, v, d int) string {
	not := func(x, bit int) int { return ^x >> bit & 1 }
	pp := map[int]int{0xf3: 2, 0xf2: 3}[prefix]
	p0 := not(d, 3)<<7 | not(rm, 4)<<6 | not(rm, 3)<<5 | not(d, 4)<<4 | 0b010
	p1 := (^v&15)<<3 | 0b100 | pp
	p2 := 0b10<<5 | not(v, 4)<<3
	return fmt.Sprintf("LONG $0x%02x%02x%02x62; WORD $0x%02x%02x // %s Z%d, Z%d, Z%d",
		p2, p1, p0, 0xc0|d&7<<3|rm&7, opcode, name, rm, v, d)
}

// Constants of the conversion to bfloat16.
const (
	bf16Bias   = "Y15" // 0x7fff: half of the last place that is kept, minus one
	bf16One    = "Y14" // 1
	bf16High   = "Y13" // 0xffff0000
	bf16Normal = "Y12" // 0x007fffff: the largest denormal number
	bf16Abs    = "Y11" // 0x7fffffff
	bf16Sign   = "Y10" // 0x80000000
)

// writeBF16 writes the conversions to bfloat16: in AVX2, with the results of VCVTNE2PS2BF16, and
// with that instruction.
func writeBF16(asm, stubs *file) {
	for i, v := range []string{"00007fff", "00000001", "ffff0000", "007fffff", "7fffffff", "80000000"} {
		asm.line("DATA bf16Constants<>+%d(SB)/4, $0x%s", 4*i, v)
	}
	asm.line("GLOBL bf16Constants<>(SB), RODATA|NOPTR, $24")
	writeConversion(asm, stubs, "bf16SwapAVX2", "sets dst to src rounded to bfloat16, the two numbers of each pair exchanged", func() {
		asm.op("VMOVUPS (SI), Y0")
		roundBF16(asm, 0)
		asm.op("VPERMILPS $0xb1, Y0, Y0")
		asm.op("VMOVUPS Y0, (DI)")
		asm.op("ADDQ $32, SI")
	})
	writeConversion(asm, stubs, "bf16PairsAVX2", "sets word i of dst to elements 2i and 2i+1 of src, the first in the low half", func() {
		asm.op("VMOVUPS (SI), Y0")
		asm.op("VMOVUPS 32(SI), Y1")
		roundBF16(asm, 0)
		roundBF16(asm, 1)
		asm.op("VSHUFPS $0x88, Y1, Y0, Y2") // the even elements, per 128 bits
		asm.op("VSHUFPS $0xdd, Y1, Y0, Y3") // the odd ones
		asm.op("VPSRLD $16, Y2, Y2")
		asm.op("VPOR Y3, Y2, Y2")
		asm.op("VPERMQ $0xd8, Y2, Y2")
		asm.op("VMOVUPS Y2, (DI)")
		asm.op("ADDQ $64, SI")
	})
	writeRowPairs(asm, stubs, "bf16SwapRowsAVX2", "rounds pairs of rows to bfloat16 and exchanges the two rows of each pair", 2, func() {
		asm.op("VMOVUPS Y1, (DI)(DX*1)")
		asm.op("VMOVUPS Y0, (R11)(DX*1)")
	})
	writeRowPairs(asm, stubs, "bf16PairRowsAVX2", "makes rows of words of pairs of rows rounded to bfloat16, the first of which is in the low halves", 1, func() {
		asm.op("VPSRLD $16, Y0, Y0")
		asm.op("VPOR Y1, Y0, Y0")
		asm.op("VMOVUPS Y0, (DI)(DX*1)")
	})
	writePairs512(asm, stubs)
	writePairRows512(asm, stubs)
}

// writePairs512 writes bf16Pairs512, which is bf16PairsAVX2 for processors with VCVTNE2PS2BF16.
func writePairs512(asm, stubs *file) {
	writeSignature(asm, stubs, "bf16Pairs512", "is bf16PairsAVX2 by VCVTNE2PS2BF16", "dst, src *float32, n int", 24)
	asm.op("MOVQ n+16(FP), CX")
	asm.line("loop:")
	asm.op("CMPQ CX, $16")
	asm.op("JLT tail")
	asm.op("VMOVUPS (SI), Z0")
	asm.op("VMOVUPS 64(SI), Z1")
	asm.op("%s", vcvtne2ps2bf16(1))
	asm.op("VMOVUPS Z2, (DI)")
	asm.op("ADDQ $128, SI")
	asm.op("ADDQ $64, DI")
	asm.op("SUBQ $16, CX")
	asm.op("JMP loop")
	asm.line("tail:")
	asm.op("TESTQ CX, CX")
	asm.op("JEQ done")
	asm.op("VMOVUPS (SI), Z0")
	asm.op("%s", vcvtne2ps2bf16(0))
	asm.op("VMOVUPS Y2, (DI)")
	asm.line("done:")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writePairRows512 writes bf16PairRows512, which is bf16PairRowsAVX2 for processors with
// VCVTNE2PS2BF16.
func writePairRows512(asm, stubs *file) {
	// Indices that make 16-bit words of the two rows alternate: word i of a register's low half,
	// then word i of its high half.
	for i := range 8 {
		asm.line("DATA bf16Alternate<>+%d(SB)/8, $0x%04x%04x%04x%04x", 8*i, 17+2*i, 2*i+1, 16+2*i, 2*i)
	}
	asm.line("GLOBL bf16Alternate<>(SB), RODATA|NOPTR, $64")
	writeSignature(asm, stubs, "bf16PairRows512", "is bf16PairRowsAVX2 by VCVTNE2PS2BF16", "dst, src *float32, dstRow, srcRow, vectors, pairs int", 48)
	asm.op("MOVQ dstRow+16(FP), R8")
	asm.op("MOVQ srcRow+24(FP), R9")
	asm.op("MOVQ vectors+32(FP), R12")
	asm.op("SHLQ $5, R12")
	asm.op("MOVQ pairs+40(FP), CX")
	asm.op("VMOVUPS bf16Alternate<>(SB), Z3")
	asm.line("pair:")
	asm.op("LEAQ (SI)(R9*1), R10")
	asm.op("XORQ DX, DX")
	asm.line("loop:")
	asm.op("LEAQ 64(DX), R11")
	asm.op("CMPQ R11, R12")
	asm.op("JGT half")
	asm.op("VMOVUPS (SI)(DX*1), Z0")
	asm.op("VMOVUPS (R10)(DX*1), Z1")
	asm.op("%s", vcvtne2ps2bf16(1))
	asm.op("VPERMW Z2, Z3, Z2")
	asm.op("VMOVUPS Z2, (DI)(DX*1)")
	asm.op("MOVQ R11, DX")
	asm.op("CMPQ DX, R12")
	asm.op("JLT loop")
	asm.op("JMP next")
	asm.line("half:")
	asm.op("VMOVUPS (SI)(DX*1), Y0")
	asm.op("VMOVUPS (R10)(DX*1), Y1")
	asm.op("%s", vcvtne2ps2bf16(1))
	asm.op("VPERMW Z2, Z3, Z2")
	asm.op("VMOVUPS Y2, (DI)(DX*1)")
	asm.line("next:")
	asm.op("LEAQ (SI)(R9*2), SI")
	asm.op("ADDQ R8, DI")
	asm.op("DECQ CX")
	asm.op("JNE pair")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writeConversion writes a function that computes n elements of dst, a multiple of 8.
func writeConversion(asm, stubs *file, name, does string, body func()) {
	writeHead(asm, stubs, name, does, "dst, src *float32, n int", 24)
	asm.op("MOVQ n+16(FP), CX")
	asm.line("loop:")
	body()
	asm.op("ADDQ $32, DI")
	asm.op("SUBQ $8, CX")
	asm.op("JNE loop")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writeRowPairs writes a function that makes the given number of rows of dst from each pair of rows
// of src. Rows of src are srcRow bytes apart, and those of dst dstRow bytes. Every row has
// 8·vectors elements. The body stores the vectors Y0 and Y1 of the two rows.
func writeRowPairs(asm, stubs *file, name, does string, rows int, body func()) {
	writeHead(asm, stubs, name, does, "dst, src *float32, dstRow, srcRow, vectors, pairs int", 48)
	asm.op("MOVQ dstRow+16(FP), R8")
	asm.op("MOVQ srcRow+24(FP), R9")
	asm.op("MOVQ vectors+32(FP), R12")
	asm.op("SHLQ $5, R12")
	asm.op("MOVQ pairs+40(FP), CX")
	asm.line("pair:")
	asm.op("LEAQ (SI)(R9*1), R10")
	if rows == 2 {
		asm.op("LEAQ (DI)(R8*1), R11")
	}
	asm.op("XORQ DX, DX")
	asm.line("loop:")
	asm.op("VMOVUPS (SI)(DX*1), Y0")
	asm.op("VMOVUPS (R10)(DX*1), Y1")
	roundBF16(asm, 0)
	roundBF16(asm, 1)
	body()
	asm.op("ADDQ $32, DX")
	asm.op("CMPQ DX, R12")
	asm.op("JNE loop")
	asm.op("LEAQ (SI)(R9*2), SI")
	asm.op("LEAQ (DI)(R8*%d), DI", rows)
	asm.op("DECQ CX")
	asm.op("JNE pair")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writeHead writes the beginning of a conversion in AVX2: dst is in DI, src in SI.
func writeHead(asm, stubs *file, name, does, params string, size int) {
	writeSignature(asm, stubs, name, does, params, size)
	for i, r := range []string{bf16Bias, bf16One, bf16High, bf16Normal, bf16Abs, bf16Sign} {
		asm.op("VPBROADCASTD bf16Constants<>+%d(SB), %s", 4*i, r)
	}
}

// writeSignature writes the declaration of a conversion, and the instructions that load dst into DI
// and src into SI.
func writeSignature(asm, stubs *file, name, does, params string, size int) {
	signature := fmt.Sprintf("func %s(%s)", name, params)
	stubs.line("")
	stubs.line("// %s %s.", name, does)
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-%d", name, size)
	asm.op("MOVQ dst+0(FP), DI")
	asm.op("MOVQ src+8(FP), SI")
}

// roundBF16 rounds the numbers in register Yi to bfloat16, in their high halves. Y4 to Y6 are
// scratch.
func roundBF16(asm *file, i int) {
	x := fmt.Sprintf("Y%d", i)
	// To nearest, ties to even: add half of the last place, minus one if that place is even.
	asm.op("VPSRLD $16, %s, Y4", x)
	asm.op("VPAND %s, Y4, Y4", bf16One)
	asm.op("VPADDD %s, Y4, Y4", bf16Bias)
	asm.op("VPADDD %s, Y4, Y4", x)
	// Set all bits of a NaN, so that it stays one.
	asm.op("VCMPPS $3, %s, %s, Y5", x, x)
	asm.op("VPOR Y5, Y4, Y4")
	// Keep the sign of a denormal number, and the high half of others.
	asm.op("VPAND %s, %s, Y6", bf16Abs, x)
	asm.op("VPCMPGTD %s, Y6, Y6", bf16Normal)
	asm.op("VPAND %s, Y6, Y6", bf16High)
	asm.op("VPOR %s, Y6, Y6", bf16Sign)
	asm.op("VPAND Y6, Y4, %s", x)
}
