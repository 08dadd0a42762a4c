package main

import "fmt"

// An update computes the step of an optimizer over n values (n a multiple of 8) with AVX2.
// The values and their state are read and written at the pointers in args, the gradient is
// only read.
type update struct {
	name      string
	constants string   // the type of the step's constants
	args      []string // pointers; the second is the gradient
	numbers   []string // fields of the constants, broadcast to Y15, Y14, and so on
	// body has the gradient with l2 regularization in Y1, and the values in Y0, where it
	// leaves the new ones. number(i) is the register of number i.
	body func(f *file, number func(i int) string)
}

// Every update begins with l2, by which the values are multiplied.
var updates = []update{
	{name: "sgd", constants: "SGD", args: []string{"w", "grad"}, numbers: []string{"L2", "Rate"}, body: func(f *file, number func(int) string) {
		f.op("VMULPS %s, Y1, Y1", number(1))
		f.op("VSUBPS Y1, Y0, Y0")
	}},
	{name: "momentum", constants: "Momentum", args: []string{"w", "grad", "b"}, numbers: []string{"L2", "Rate", "Momentum"}, body: func(f *file, number func(int) string) {
		f.op("VMULPS (DX), %s, Y2", number(2))
		f.op("VADDPS Y1, Y2, Y2")
		f.op("VMOVUPS Y2, (DX)")
		f.op("VMULPS %s, Y2, Y2", number(1))
		f.op("VSUBPS Y2, Y0, Y0")
	}},
	{name: "adagrad", constants: "Adagrad", args: []string{"w", "grad", "s"}, numbers: []string{"L2", "Rate", "Epsilon"}, body: func(f *file, number func(int) string) {
		f.op("VMULPS Y1, Y1, Y2")
		f.op("VADDPS (DX), Y2, Y2")
		f.op("VMOVUPS Y2, (DX)")
		f.op("VSQRTPS Y2, Y2")
		f.op("VADDPS %s, Y2, Y2", number(2))
		f.op("VMULPS %s, Y1, Y1", number(1))
		f.op("VDIVPS Y2, Y1, Y1")
		f.op("VSUBPS Y1, Y0, Y0")
	}},
	{name: "adam", constants: "Adam", args: []string{"w", "grad", "m", "v"}, numbers: []string{"L2", "Rest1", "Beta2", "Rest2", "Size", "Scale", "Epsilon"}, body: func(f *file, number func(int) string) {
		f.op("VMOVUPS (DX), Y2")
		f.op("VSUBPS Y2, Y1, Y3")
		f.op("VMULPS %s, Y3, Y3", number(1))
		f.op("VADDPS Y3, Y2, Y2")
		f.op("VMOVUPS Y2, (DX)")
		f.op("VMULPS %s, Y1, Y3", number(3))
		f.op("VMULPS Y1, Y3, Y3")
		f.op("VMULPS (R8), %s, Y4", number(2))
		f.op("VADDPS Y3, Y4, Y4")
		f.op("VMOVUPS Y4, (R8)")
		f.op("VSQRTPS Y4, Y4")
		f.op("VDIVPS %s, Y4, Y4", number(5))
		f.op("VADDPS %s, Y4, Y4", number(6))
		f.op("VMULPS %s, Y2, Y2", number(4))
		f.op("VDIVPS Y4, Y2, Y2")
		f.op("VSUBPS Y2, Y0, Y0")
	}},
}

func writeOptimizer(asm, stubs *file) {
	for _, u := range updates {
		writeUpdate(asm, stubs, u)
	}
}

func writeUpdate(asm, stubs *file, u update) {
	params := ""
	for _, a := range u.args {
		params += a + " *float32, "
	}
	signature := "func " + u.name + "AVX2(" + params + "n int, c *" + u.constants + ")"
	stubs.line("")
	stubs.line("//go:noescape")
	stubs.line("%s", signature)
	asm.line("")
	asm.line("// %s", signature)
	asm.line("TEXT ·%sAVX2(SB), NOSPLIT, $0-%d", u.name, 8*(len(u.args)+2))
	for i, a := range u.args {
		asm.op("MOVQ %s+%d(FP), %s", a, 8*i, pointerRegs[i])
	}
	asm.op("MOVQ n+%d(FP), CX", 8*len(u.args))
	asm.op("MOVQ c+%d(FP), AX", 8*(len(u.args)+1))
	number := func(i int) string { return fmt.Sprintf("Y%d", 15-i) }
	for i, field := range u.numbers {
		asm.op("VBROADCASTSS %s_%s(AX), %s", u.constants, field, number(i))
	}
	asm.op("PCALIGN $32")
	asm.line("loop:")
	asm.op("VMOVUPS (DI), Y0")
	asm.op("VMULPS %s, Y0, Y1", number(0))
	asm.op("VADDPS (SI), Y1, Y1")
	u.body(asm, number)
	asm.op("VMOVUPS Y0, (DI)")
	for i := range u.args {
		asm.op("ADDQ $32, %s", pointerRegs[i])
	}
	asm.op("SUBQ $8, CX")
	asm.op("JGT loop")
	asm.op("VZEROUPPER")
	asm.op("RET")
}
