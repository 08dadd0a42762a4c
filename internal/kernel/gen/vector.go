package main

import "fmt"

// An elementwise kernel computes n elements (n a multiple of 8) of its first
// argument from the others with AVX2.
type elementwise struct {
	name   string
	args   []string // pointers; the first is the destination
	scalar bool     // whether a float32 alpha follows n, broadcast to Y15
	// body computes one vector from the loaded operands. in(i) is the memory
	// operand of argument i for the vector, x a scratch register; the result is
	// left in x.
	body func(f *file, in func(i int) string, x, y string)
}

var elementwises = []elementwise{
	{name: "addAVX2", args: []string{"dst", "a"}, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMOVUPS %s, %s", in(0), x)
		f.op("VADDPS %s, %s, %s", in(1), x, x)
	}},
	{name: "mulAVX2", args: []string{"dst", "a", "b"}, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMOVUPS %s, %s", in(1), x)
		f.op("VMULPS %s, %s, %s", in(2), x, x)
	}},
	{name: "mulThenAddAVX2", args: []string{"dst", "a", "b", "c"}, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMOVUPS %s, %s", in(1), x)
		f.op("VMULPS %s, %s, %s", in(2), x, x)
		f.op("VADDPS %s, %s, %s", in(3), x, x)
	}},
	{name: "scaleAVX2", args: []string{"dst", "src"}, scalar: true, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMULPS %s, Y15, %s", in(1), x)
	}},
	{name: "axpyAVX2", args: []string{"y", "x"}, scalar: true, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMOVUPS %s, %s", in(0), x)
		f.op("VFMADD231PS %s, Y15, %s", in(1), x)
	}},
	// VMAXPS returns its last operand unless the first is greater: src where it
	// is NaN or a zero of either sign. Y14 is zero.
	{name: "reluAVX2", args: []string{"dst", "src"}, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VMAXPS %s, Y14, %s", in(1), x)
	}},
	// 17 is less than, ordered, quiet: 0 < out.
	{name: "reluBackwardAVX2", args: []string{"dst", "grad", "out"}, body: func(f *file, in func(int) string, x, _ string) {
		f.op("VCMPPS $17, %s, Y14, %s", in(2), x)
		f.op("VANDPS %s, %s, %s", in(1), x, x)
	}},
	// Y13 is one.
	{name: "sigmoidBackwardAVX2", args: []string{"dst", "grad", "out"}, body: func(f *file, in func(int) string, x, y string) {
		f.op("VMOVUPS %s, %s", in(2), x)
		f.op("VSUBPS %s, Y13, %s", x, y)
		f.op("VMULPS %s, %s, %s", x, y, x)
		f.op("VMULPS %s, %s, %s", in(1), x, x)
	}},
	{name: "tanhBackwardAVX2", args: []string{"dst", "grad", "out"}, body: func(f *file, in func(int) string, x, y string) {
		f.op("VMOVUPS %s, %s", in(2), y)
		f.op("VMOVAPS Y13, %s", x)
		f.op("VFNMADD231PS %s, %s, %s", y, y, x)
		f.op("VMULPS %s, %s, %s", in(1), x, x)
	}},
}

var pointerRegs = []string{"DI", "SI", "DX", "R8"}

func writeVector(asm, stubs *file) {
	asm.line("")
	asm.line("DATA one<>+0(SB)/4, $0x3f800000")
	asm.line("GLOBL one<>(SB), RODATA|NOPTR, $4")
	for _, e := range elementwises {
		writeElementwise(asm, stubs, e)
	}
	writeLanes(asm, stubs, "sumLanesAVX2", 1)
	writeLanes(asm, stubs, "dotLanesAVX2", 2)
	writeTranspose(asm, stubs)
	for _, vectors := range []int{1, 2, 4} {
		writeCopyRows(asm, stubs, vectors)
	}
	writePrefetch(asm, stubs)
}

// writePrefetch writes the request for the cache lines of some elements.
func writePrefetch(asm, stubs *file) {
	const signature = "func prefetch(x *float32, n int)"
	stubs.line("")
	stubs.line("// prefetch asks for the cache lines of n elements, at least 1.")
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·prefetch(SB), NOSPLIT, $0-16")
	asm.op("MOVQ x+0(FP), SI")
	asm.op("MOVQ n+8(FP), CX")
	asm.op("LEAQ -1(SI)(CX*4), CX")
	asm.op("ANDQ $-64, SI")
	asm.line("loop:")
	asm.op("PREFETCHT0 (SI)")
	asm.op("ADDQ $64, SI")
	asm.op("CMPQ SI, CX")
	asm.op("JLS loop")
	asm.op("RET")
}

// writeCopyRows writes the copying of rows of one width that lie apart to rows that follow
// one another.
func writeCopyRows(asm, stubs *file, vectors int) {
	name := fmt.Sprintf("copyRows%dAVX2", 8*vectors)
	signature := fmt.Sprintf("func %s(dst *float32, src *float32, srcRow int, rows int)", name)
	stubs.line("")
	stubs.line("// %s copies rows of %d elements, srcRow bytes apart, to dst.", name, 8*vectors)
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-32", name)
	asm.op("MOVQ dst+0(FP), DI")
	asm.op("MOVQ src+8(FP), SI")
	asm.op("MOVQ srcRow+16(FP), R9")
	asm.op("MOVQ rows+24(FP), CX")
	asm.line("loop:")
	for v := range vectors {
		asm.op("VMOVUPS %d(SI), Y%d", 32*v, v)
	}
	for v := range vectors {
		asm.op("VMOVUPS Y%d, %d(DI)", v, 32*v)
	}
	asm.op("ADDQ R9, SI")
	asm.op("ADDQ $%d, DI", 32*vectors)
	asm.op("DECQ CX")
	asm.op("JNZ loop")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

func writeElementwise(asm, stubs *file, e elementwise) {
	stubs.line("")
	stubs.line("//go:noescape")
	params := ""
	for _, a := range e.args {
		params += a + " *float32, "
	}
	signature := "func " + e.name + "(" + params + "n int"
	size := 8 * (len(e.args) + 1)
	if e.scalar {
		signature += ", alpha float32"
		size += 4
	}
	signature += ")"
	stubs.line("%s", signature)

	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-%d", e.name, size)
	for i, a := range e.args {
		asm.op("MOVQ %s+%d(FP), %s", a, 8*i, pointerRegs[i])
	}
	asm.op("MOVQ n+%d(FP), CX", 8*len(e.args))
	if e.scalar {
		asm.op("VBROADCASTSS alpha+%d(FP), Y15", 8*(len(e.args)+1))
	}
	asm.op("VXORPS Y14, Y14, Y14")
	asm.op("VBROADCASTSS one<>(SB), Y13")
	step := func(vectors int) {
		for v := range vectors {
			in := func(i int) string {
				return fmt.Sprintf("%d(%s)", 32*v, pointerRegs[i])
			}
			x := fmt.Sprintf("Y%d", v)
			e.body(asm, in, x, fmt.Sprintf("Y%d", v+4))
			asm.op("VMOVUPS %s, %s", x, in(0))
		}
		for i := range e.args {
			asm.op("ADDQ $%d, %s", 32*vectors, pointerRegs[i])
		}
	}
	asm.op("SUBQ $32, CX")
	asm.op("JLT rest")
	asm.op("PCALIGN $32")
	asm.line("loop4:")
	step(4)
	asm.op("SUBQ $32, CX")
	asm.op("JGE loop4")
	asm.line("rest:")
	asm.op("ADDQ $32, CX")
	asm.op("JEQ done")
	asm.line("loop1:")
	step(1)
	asm.op("SUBQ $8, CX")
	asm.op("JGT loop1")
	asm.line("done:")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writeLanes writes the inner part of a reduction: 16 lanes in Y0 and Y1, n
// elements (a multiple of 16) of one or two vectors.
func writeLanes(asm, stubs *file, name string, vectors int) {
	signature := fmt.Sprintf("func %s(l *[lanes]float32, a *float32, n int)", name)
	if vectors == 2 {
		signature = fmt.Sprintf("func %s(l *[lanes]float32, a, b *float32, n int)", name)
	}
	stubs.line("")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-%d", name, 8*(vectors+2))
	asm.op("MOVQ l+0(FP), DI")
	asm.op("MOVQ a+8(FP), SI")
	if vectors == 2 {
		asm.op("MOVQ b+16(FP), DX")
	}
	asm.op("MOVQ n+%d(FP), CX", 8*(vectors+1))
	asm.op("VMOVUPS (DI), Y0")
	asm.op("VMOVUPS 32(DI), Y1")
	asm.op("TESTQ CX, CX")
	asm.op("JEQ done")
	asm.line("loop:")
	if vectors == 1 {
		asm.op("VADDPS (SI), Y0, Y0")
		asm.op("VADDPS 32(SI), Y1, Y1")
	} else {
		asm.op("VMOVUPS (SI), Y2")
		asm.op("VMOVUPS 32(SI), Y3")
		asm.op("VFMADD231PS (DX), Y2, Y0")
		asm.op("VFMADD231PS 32(DX), Y3, Y1")
		asm.op("ADDQ $64, DX")
	}
	asm.op("ADDQ $64, SI")
	asm.op("SUBQ $16, CX")
	asm.op("JNE loop")
	asm.line("done:")
	asm.op("VMOVUPS Y0, (DI)")
	asm.op("VMOVUPS Y1, 32(DI)")
	asm.op("VZEROUPPER")
	asm.op("RET")
}

// writeTranspose writes the transposition of 8 rows of 8·blocks elements into
// 8·blocks rows of 8: three rounds of exchanges between registers at distances
// 1, 2 and 4.
func writeTranspose(asm, stubs *file) {
	signature := "func transpose8AVX2(dst *float32, dstRow int, src *float32, srcRow int, blocks int)"
	stubs.line("")
	stubs.line("// transpose8AVX2 sets row p, column j of dst to row j, column p of src for j < 8")
	stubs.line("// and p < 8*blocks. dstRow and srcRow are bytes between rows.")
	stubs.line("//")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·transpose8AVX2(SB), NOSPLIT, $0-40")
	asm.op("MOVQ dst+0(FP), DI")
	asm.op("MOVQ dstRow+8(FP), R8")
	asm.op("MOVQ src+16(FP), SI")
	asm.op("MOVQ srcRow+24(FP), R9")
	asm.op("MOVQ blocks+32(FP), CX")
	asm.op("LEAQ (R8)(R8*2), R10")
	asm.op("LEAQ (R9)(R9*2), R11")
	asm.op("TESTQ CX, CX")
	asm.op("JEQ done")
	asm.line("loop:")
	asm.op("LEAQ (SI)(R9*4), BX")
	rows := func(base0, base4, stride, stride3 string) []string {
		var a []string
		for _, b := range []string{base0, base4} {
			a = append(a, "("+b+")", "("+b+")("+stride+"*1)", "("+b+")("+stride+"*2)", "("+b+")("+stride3+"*1)")
		}
		return a
	}
	src := rows("SI", "BX", "R9", "R11")
	// Halves of rows r and r+4 side by side: Y0..Y3 hold columns 0-3, Y4..Y7
	// columns 4-7 of rows r (low) and r+4 (high).
	for r := range 4 {
		low, high := src[r], src[r+4]
		asm.op("VMOVUPS %s, X%d", low, r)
		asm.op("VINSERTF128 $1, %s, Y%d, Y%d", high, r, r)
		asm.op("VMOVUPS 16%s, X%d", low, r+4)
		asm.op("VINSERTF128 $1, 16%s, Y%d, Y%d", high, r+4, r+4)
	}
	asm.op("LEAQ (DI)(R8*4), BX")
	dst := rows("DI", "BX", "R8", "R10")
	for half := range 2 {
		b := 4 * half
		asm.op("VUNPCKLPS Y%d, Y%d, Y8", b+1, b)
		asm.op("VUNPCKHPS Y%d, Y%d, Y9", b+1, b)
		asm.op("VUNPCKLPS Y%d, Y%d, Y10", b+3, b+2)
		asm.op("VUNPCKHPS Y%d, Y%d, Y11", b+3, b+2)
		asm.op("VUNPCKLPD Y10, Y8, Y12")
		asm.op("VUNPCKHPD Y10, Y8, Y13")
		asm.op("VUNPCKLPD Y11, Y9, Y14")
		asm.op("VUNPCKHPD Y11, Y9, Y15")
		for i := range 4 {
			asm.op("VMOVUPS Y%d, %s", 12+i, dst[b+i])
		}
	}
	asm.op("LEAQ (BX)(R8*4), DI")
	asm.op("ADDQ $32, SI")
	asm.op("DECQ CX")
	asm.op("JNZ loop")
	asm.line("done:")
	asm.op("VZEROUPPER")
	asm.op("RET")
}
