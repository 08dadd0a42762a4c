package main

import "fmt"

// isa is an instruction set as the tile kernels see it.
type isa struct {
	name   string // part of the function names
	reg    string // name of a vector register
	bytes  int    // of a vector register
	rows   []int  // heights of the tiles, descending; any height is a sum of these
	masked bool   // whether masked variants are functions of their own
	pairs  bool   // whether the elements are pairs of bfloat16
}

var isas = []isa{
	// 14x2 accumulators, 2 for B and 2 broadcasts of A make 32 registers.
	{name: "512", reg: "Z", bytes: 64, rows: []int{14, 8, 4, 2, 1}},
	{name: "BF16", reg: "Z", bytes: 64, rows: []int{14, 8, 4, 2, 1}, pairs: true},
	// 6x2 accumulators, 2 for B, a broadcast and a mask make 16.
	{name: "256", reg: "Y", bytes: 32, rows: []int{6, 4, 2, 1}, masked: true},
}

func writeGemm(asm, stubs *file) {
	asm.line("")
	asm.line("// 8 times all ones, then 8 times zero: a mask of w lanes starts at 32-4w.")
	for i := range 8 {
		v := "$0xffffffffffffffff"
		if i >= 4 {
			v = "$0"
		}
		asm.line("DATA tileMasks<>+%d(SB)/8, %s", 8*i, v)
	}
	asm.line("GLOBL tileMasks<>(SB), RODATA|NOPTR, $64")
	asm.line("// Control word of vectors: round to nearest, no exceptions, denormal numbers are zeros.")
	asm.line("DATA tileFlush<>(SB)/4, $0x9fc0")
	asm.line("GLOBL tileFlush<>(SB), RODATA|NOPTR, $4")
	for _, s := range isas {
		for _, rows := range s.rows {
			for vectors := 1; vectors <= 2; vectors++ {
				writeTile(asm, stubs, s, rows, vectors, !s.masked)
				if s.masked {
					writeTile(asm, stubs, s, rows, vectors, true)
				}
			}
		}
	}
}

// Registers of a tile kernel.
const (
	regTile = "DI"
	regA0   = "AX"  // rows 0 to 6 of A at the present k
	regA7   = "BX"  // rows 7 to 13
	regB    = "SI"  // row of B at the present k
	regC    = "DX"  // row of C
	regK    = "CX"  // steps left
	regRS   = "R8"  // bytes between rows of A
	regRS3  = "R9"  // 3 times that
	regRS5  = "R10" // 5 times that
	regKS   = "R11" // bytes between columns of A
	regBS   = "R12" // bytes between rows of B
	regLDC  = "R13" // bytes between rows of C
)

// rowAddress returns the operand for row r of A.
func rowAddress(r int) string {
	base := regA0
	if r >= 7 {
		base, r = regA7, r-7
	}
	return "(" + base + ")" + [7]string{"", "(" + regRS + "*1)", "(" + regRS + "*2)", "(" + regRS3 + "*1)",
		"(" + regRS + "*4)", "(" + regRS5 + "*1)", "(" + regRS3 + "*2)"}[r]
}

// writeTile writes the kernel for a tile of rows x (vectors·lanes) elements of
// C. If masked, the last vector covers only the first tile.lanes columns.
func writeTile(asm, stubs *file, s isa, rows, vectors int, masked bool) {
	name := fmt.Sprintf("tile%sx%dx%d", s.name, rows, vectors)
	if masked && s.masked {
		name += "masked"
	}
	stubs.line("")
	stubs.line("//go:noescape")
	stubs.line("func %s(t *tile)", name)

	reg := func(i int) string { return fmt.Sprintf("%s%d", s.reg, i) }
	acc := func(r, v int) string { return reg(r*vectors + v) }
	mem := func(base string, v int) string {
		if v == 0 {
			return "(" + base + ")"
		}
		return fmt.Sprintf("%d(%s)", v*s.bytes, base)
	}
	firstB := rows * vectors
	mask := "K1"
	if s.masked {
		mask = reg(15)
	}
	// Loads and stores of vector v; the last one goes through the mask.
	load := func(from string, v int, to string) {
		switch {
		case !masked || v < vectors-1:
			asm.op("VMOVUPS %s, %s", from, to)
		case s.masked:
			asm.op("VMASKMOVPS %s, %s, %s", from, mask, to)
		default:
			asm.op("VMOVUPS.Z %s, %s, %s", from, mask, to)
		}
	}
	store := func(from string, v int, to string) {
		switch {
		case !masked || v < vectors-1:
			asm.op("VMOVUPS %s, %s", from, to)
		default:
			// VMASKMOVPS and masked VMOVUPS take their operands in one order.
			op := "VMOVUPS"
			if s.masked {
				op = "VMASKMOVPS"
			}
			asm.op("%s %s, %s, %s", op, from, mask, to)
		}
	}

	clear := func(r string) {
		if s.reg == "Z" {
			asm.op("VPXORD %s, %s, %s", r, r, r)
		} else {
			asm.op("VXORPS %s, %s, %s", r, r, r)
		}
	}

	asm.line("")
	asm.line("// func %s(t *tile)", name)
	asm.line("TEXT ·%s(SB), NOSPLIT, $0-8", name)
	asm.op("MOVQ t+0(FP), %s", regTile)
	if masked {
		asm.op("MOVQ tile_lanes(%s), CX", regTile)
		if s.masked {
			asm.op("LEAQ tileMasks<>+32(SB), R8")
			asm.op("SHLQ $2, CX")
			asm.op("SUBQ CX, R8")
			asm.op("VMOVUPS (R8), %s", mask)
		} else {
			asm.op("MOVQ $-1, R8")
			asm.op("SHLQ CX, R8")
			asm.op("NOTQ R8")
			asm.op("KMOVW R8, %s", mask)
		}
	}
	asm.op("MOVQ tile_a(%s), %s", regTile, regA0)
	asm.op("MOVQ tile_b(%s), %s", regTile, regB)
	asm.op("MOVQ tile_c(%s), %s", regTile, regC)
	asm.op("MOVQ tile_aRow(%s), %s", regTile, regRS)
	asm.op("MOVQ tile_aCol(%s), %s", regTile, regKS)
	asm.op("MOVQ tile_bRow(%s), %s", regTile, regBS)
	asm.op("MOVQ tile_cRow(%s), %s", regTile, regLDC)
	if rows > 3 {
		asm.op("LEAQ (%s)(%s*2), %s", regRS, regRS, regRS3)
	}
	if rows > 5 {
		asm.op("LEAQ (%s)(%s*4), %s", regRS, regRS, regRS5)
	}
	if rows > 7 {
		asm.op("LEAQ (%s)(%s*2), %s", regA0, regRS3, regA7)
		asm.op("ADDQ %s, %s", regRS, regA7)
	}

	// Fetch C of the tile below, which comes next: the chains would
	// wait for it otherwise. A short tile has no time for that.
	asm.op("CMPQ tile_k(%s), $48", regTile)
	asm.op("JLT fetched")
	asm.op("MOVQ $%d, CX", rows)
	asm.op("IMULQ %s, CX", regLDC)
	asm.op("ADDQ %s, CX", regC)
	for r := range rows {
		for line := 0; line < vectors*s.bytes; line += 64 {
			asm.op("PREFETCHT0 %d(CX)", line)
		}
		asm.op("PREFETCHT0 %d(CX)", vectors*s.bytes-1)
		if r < rows-1 {
			asm.op("ADDQ %s, CX", regLDC)
		}
	}
	asm.line("fetched:")

	// Start the chains from C or from +0.
	asm.op("CMPB tile_fromC(%s), $0", regTile)
	asm.op("JEQ zero")
	for r := range rows {
		for v := range vectors {
			load(mem(regC, v), v, acc(r, v))
		}
		if r < rows-1 {
			asm.op("ADDQ %s, %s", regLDC, regC)
		}
	}
	asm.op("MOVQ tile_c(%s), %s", regTile, regC)
	asm.op("JMP start")
	asm.line("zero:")
	for i := range rows * vectors {
		clear(reg(i))
	}
	asm.line("start:")
	asm.op("MOVQ tile_k(%s), %s", regTile, regK)
	if !s.pairs {
		asm.op("CMPB tile_flush(%s), $0", regTile)
		asm.op("JEQ loop")
		asm.op("STMXCSR tile_mxcsr(%s)", regTile)
		asm.op("LDMXCSR tileFlush<>(SB)")
	}
	asm.op("PCALIGN $32")
	asm.line("loop:")
	for v := range vectors {
		load(mem(regB, v), v, reg(firstB+v))
	}
	for r := range rows {
		if vectors == 1 && s.reg == "Z" && !s.pairs {
			asm.op("VFMADD231PS.BCST %s, %s, %s", rowAddress(r), reg(firstB), acc(r, 0))
			continue
		}
		a := reg(firstB + vectors)
		if s.reg == "Z" && r%2 == 1 {
			a = reg(firstB + vectors + 1)
		}
		asm.op("VBROADCASTSS %s, %s", rowAddress(r), a)
		for v := range vectors {
			if s.pairs {
				asm.op("%s", vdpbf16ps(firstB+v, firstB+vectors+r%2, r*vectors+v))
				continue
			}
			asm.op("VFMADD231PS %s, %s, %s", reg(firstB+v), a, acc(r, v))
		}
	}
	asm.op("ADDQ %s, %s", regBS, regB)
	asm.op("ADDQ %s, %s", regKS, regA0)
	if rows > 7 {
		asm.op("ADDQ %s, %s", regKS, regA7)
	}
	asm.op("DECQ %s", regK)
	asm.op("JNZ loop")
	if !s.pairs {
		asm.op("CMPB tile_flush(%s), $0", regTile)
		asm.op("JEQ finish")
		asm.op("LDMXCSR tile_mxcsr(%s)", regTile)
		asm.line("finish:")
	}

	// The epilogue. The registers of A and B are free now.
	spare := reg(firstB)
	zero := reg(firstB + 1)
	asm.op("MOVQ tile_bias(%s), %s", regTile, regB)
	asm.op("TESTQ %s, %s", regB, regB)
	asm.op("JEQ nobias")
	for v := range vectors {
		load(mem(regB, v), v, spare)
		for r := range rows {
			asm.op("VADDPS %s, %s, %s", spare, acc(r, v), acc(r, v))
		}
	}
	asm.line("nobias:")
	asm.op("CMPB tile_relu(%s), $0", regTile)
	asm.op("JEQ norelu")
	clear(zero)
	for i := range rows * vectors {
		// The second source, the first operand here, is the result where it is NaN or a zero.
		asm.op("VMAXPS %s, %s, %s", reg(i), zero, reg(i))
	}
	asm.line("norelu:")
	asm.op("MOVQ tile_out(%s), %s", regTile, regB)
	asm.op("TESTQ %s, %s", regB, regB)
	asm.op("JEQ noout")
	asm.op("MOVQ tile_outRow(%s), %s", regTile, regBS)
	clear(zero)
	for r := range rows {
		for v := range vectors {
			// 17 is less than, ordered, quiet: 0 < out.
			switch {
			case s.masked:
				load(mem(regB, v), v, spare)
				asm.op("VCMPPS $17, %s, %s, %s", spare, zero, spare)
				asm.op("VANDPS %s, %s, %s", spare, acc(r, v), acc(r, v))
			case masked && v == vectors-1:
				asm.op("VCMPPS $17, %s, %s, %s, K2", mem(regB, v), zero, mask)
				asm.op("VMOVAPS.Z %s, K2, %s", acc(r, v), acc(r, v))
			default:
				asm.op("VCMPPS $17, %s, %s, K2", mem(regB, v), zero)
				asm.op("VMOVAPS.Z %s, K2, %s", acc(r, v), acc(r, v))
			}
		}
		if r < rows-1 {
			asm.op("ADDQ %s, %s", regBS, regB)
		}
	}
	asm.line("noout:")
	for r := range rows {
		for v := range vectors {
			store(acc(r, v), v, mem(regC, v))
		}
		if r < rows-1 {
			asm.op("ADDQ %s, %s", regLDC, regC)
		}
	}
	asm.op("VZEROUPPER")
	asm.op("RET")
}
