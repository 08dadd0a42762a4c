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

	regAhead = "R14" // what is prefetched next
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

// tileWriter writes the kernel for a tile of rows x (vectors·lanes) elements of C. If masked, the
// last vector covers only the first tile.lanes columns.
type tileWriter struct {
	*file
	s             isa
	rows, vectors int
	masked        bool
	mask          string // register of the mask
	firstB        int    // first register of those of B
	// The registers of A and B are free after the chains.
	spare, zero string
}

func writeTile(asm, stubs *file, s isa, rows, vectors int, masked bool) {
	w := tileWriter{file: asm, s: s, rows: rows, vectors: vectors, masked: masked, mask: "K1", firstB: rows * vectors}
	w.spare, w.zero = w.reg(w.firstB), w.reg(w.firstB+1)
	name := fmt.Sprintf("tile%sx%dx%d", s.name, rows, vectors)
	if masked && s.masked {
		name += "masked"
	}
	if s.masked {
		w.mask = w.reg(15)
	}
	stubs.line("")
	stubs.line("//go:noescape")
	stubs.line("func %s(t *tile)", name)

	w.line("")
	w.line("// func %s(t *tile)", name)
	w.line("TEXT ·%s(SB), NOSPLIT, $0-8", name)
	w.op("MOVQ t+0(FP), %s", regTile)
	if masked {
		w.makeMask()
	}
	w.operands()
	w.fetchNext()
	w.startChains()
	w.chains()
	w.addBias()
	w.relu()
	w.keepWhereOut()
	w.storeC()
	w.op("VZEROUPPER")
	w.op("RET")
}

func (w *tileWriter) reg(i int) string { return fmt.Sprintf("%s%d", w.s.reg, i) }

// acc is the register of the sums of row r and vector v.
func (w *tileWriter) acc(r, v int) string { return w.reg(r*w.vectors + v) }

// mem is vector v from base on.
func (w *tileWriter) mem(base string, v int) string {
	if v == 0 {
		return "(" + base + ")"
	}
	return fmt.Sprintf("%d(%s)", v*w.s.bytes, base)
}

// load loads vector v; the last one goes through the mask, as in store.
func (w *tileWriter) load(from string, v int, to string) {
	switch {
	case !w.masked || v < w.vectors-1:
		w.op("VMOVUPS %s, %s", from, to)
	case w.s.masked:
		w.op("VMASKMOVPS %s, %s, %s", from, w.mask, to)
	default:
		w.op("VMOVUPS.Z %s, %s, %s", from, w.mask, to)
	}
}

func (w *tileWriter) store(from string, v int, to string) {
	switch {
	case !w.masked || v < w.vectors-1:
		w.op("VMOVUPS %s, %s", from, to)
	default:
		// VMASKMOVPS and masked VMOVUPS take their operands in one order.
		op := "VMOVUPS"
		if w.s.masked {
			op = "VMASKMOVPS"
		}
		w.op("%s %s, %s, %s", op, from, w.mask, to)
	}
}

func (w *tileWriter) clear(r string) {
	if w.s.reg == "Z" {
		w.op("VPXORD %s, %s, %s", r, r, r)
	} else {
		w.op("VXORPS %s, %s, %s", r, r, r)
	}
}

func (w *tileWriter) makeMask() {
	w.op("MOVQ tile_lanes(%s), CX", regTile)
	if w.s.masked {
		w.op("LEAQ tileMasks<>+32(SB), R8")
		w.op("SHLQ $2, CX")
		w.op("SUBQ CX, R8")
		w.op("VMOVUPS (R8), %s", w.mask)
	} else {
		w.op("MOVQ $-1, R8")
		w.op("SHLQ CX, R8")
		w.op("NOTQ R8")
		w.op("KMOVW R8, %s", w.mask)
	}
}

// operands loads the addresses of A, B and C, and the bytes between their rows.
func (w *tileWriter) operands() {
	w.op("MOVQ tile_a(%s), %s", regTile, regA0)
	w.op("MOVQ tile_b(%s), %s", regTile, regB)
	w.op("MOVQ tile_c(%s), %s", regTile, regC)
	w.op("MOVQ tile_aRow(%s), %s", regTile, regRS)
	w.op("MOVQ tile_aCol(%s), %s", regTile, regKS)
	w.op("MOVQ tile_bRow(%s), %s", regTile, regBS)
	w.op("MOVQ tile_cRow(%s), %s", regTile, regLDC)
	if w.rows > 3 {
		w.op("LEAQ (%s)(%s*2), %s", regRS, regRS, regRS3)
	}
	if w.rows > 5 {
		w.op("LEAQ (%s)(%s*4), %s", regRS, regRS, regRS5)
	}
	if w.rows > 7 {
		w.op("LEAQ (%s)(%s*2), %s", regA0, regRS3, regA7)
		w.op("ADDQ %s, %s", regRS, regA7)
	}
}

// fetchNext fetches C of the tile below, which comes next: the chains would
// wait for it otherwise. A short tile has no time for that.
func (w *tileWriter) fetchNext() {
	w.op("CMPQ tile_k(%s), $48", regTile)
	w.op("JLT fetched")
	w.op("MOVQ $%d, CX", w.rows)
	w.op("IMULQ %s, CX", regLDC)
	w.op("ADDQ %s, CX", regC)
	for r := range w.rows {
		for line := 0; line < w.vectors*w.s.bytes; line += 64 {
			w.op("PREFETCHT0 %d(CX)", line)
		}
		w.op("PREFETCHT0 %d(CX)", w.vectors*w.s.bytes-1)
		if r < w.rows-1 {
			w.op("ADDQ %s, CX", regLDC)
		}
	}
	w.line("fetched:")
}

// startChains starts the chains from C or from +0.
func (w *tileWriter) startChains() {
	w.op("CMPB tile_fromC(%s), $0", regTile)
	w.op("JEQ zero")
	for r := range w.rows {
		for v := range w.vectors {
			w.load(w.mem(regC, v), v, w.acc(r, v))
		}
		if r < w.rows-1 {
			w.op("ADDQ %s, %s", regLDC, regC)
		}
	}
	w.op("MOVQ tile_c(%s), %s", regTile, regC)
	w.op("JMP start")
	w.line("zero:")
	for i := range w.rows * w.vectors {
		w.clear(w.reg(i))
	}
	w.line("start:")
}

// prefetchesAhead reports whether the kernel prefetches operands of the next product: the kernel that
// does most of the work does.
func (w *tileWriter) prefetchesAhead() bool { return w.rows == w.s.rows[0] && w.vectors == 2 }

// chains adds the products of all steps to the sums.
func (w *tileWriter) chains() {
	w.op("MOVQ tile_k(%s), %s", regTile, regK)
	if w.prefetchesAhead() {
		w.op("MOVQ tile_ahead(%s), %s", regTile, regAhead)
	}
	if !w.s.pairs {
		w.op("CMPB tile_flush(%s), $0", regTile)
		w.op("JEQ loop")
		w.op("STMXCSR tile_mxcsr(%s)", regTile)
		w.op("LDMXCSR tileFlush<>(SB)")
	}
	w.op("PCALIGN $32")
	w.line("loop:")
	for v := range w.vectors {
		w.load(w.mem(regB, v), v, w.reg(w.firstB+v))
	}
	for r := range w.rows {
		if w.vectors == 1 && w.s.reg == "Z" && !w.s.pairs {
			w.op("VFMADD231PS.BCST %s, %s, %s", rowAddress(r), w.reg(w.firstB), w.acc(r, 0))
			continue
		}
		a := w.reg(w.firstB + w.vectors)
		if w.s.reg == "Z" && r%2 == 1 {
			a = w.reg(w.firstB + w.vectors + 1)
		}
		w.op("VBROADCASTSS %s, %s", rowAddress(r), a)
		for v := range w.vectors {
			if w.s.pairs {
				w.op("%s", vdpbf16ps(w.firstB+v, w.firstB+w.vectors+r%2, r*w.vectors+v))
				continue
			}
			w.op("VFMADD231PS %s, %s, %s", w.reg(w.firstB+v), a, w.acc(r, v))
		}
	}
	w.op("ADDQ %s, %s", regBS, regB)
	w.op("ADDQ %s, %s", regKS, regA0)
	if w.rows > 7 {
		w.op("ADDQ %s, %s", regKS, regA7)
	}
	w.op("DECQ %s", regK)
	if w.prefetchesAhead() {
		// The kernel's aheadSteps is 2.
		w.op("JEQ summed")
		w.op("TESTQ $1, %s", regK)
		w.op("JNE loop")
		w.op("PREFETCHT1 (%s)", regAhead)
		w.op("ADDQ tile_aheadRow(%s), %s", regTile, regAhead)
		w.op("JMP loop")
		w.line("summed:")
	} else {
		w.op("JNZ loop")
	}
	if !w.s.pairs {
		w.op("CMPB tile_flush(%s), $0", regTile)
		w.op("JEQ finish")
		w.op("LDMXCSR tile_mxcsr(%s)", regTile)
		w.line("finish:")
	}
}

func (w *tileWriter) addBias() {
	w.op("MOVQ tile_bias(%s), %s", regTile, regB)
	w.op("TESTQ %s, %s", regB, regB)
	w.op("JEQ nobias")
	for v := range w.vectors {
		w.load(w.mem(regB, v), v, w.spare)
		for r := range w.rows {
			w.op("VADDPS %s, %s, %s", w.spare, w.acc(r, v), w.acc(r, v))
		}
	}
	w.line("nobias:")
}

func (w *tileWriter) relu() {
	w.op("CMPB tile_relu(%s), $0", regTile)
	w.op("JEQ norelu")
	w.clear(w.zero)
	for i := range w.rows * w.vectors {
		// The second source, the first operand here, is the result where it is NaN or a zero.
		w.op("VMAXPS %s, %s, %s", w.reg(i), w.zero, w.reg(i))
	}
	w.line("norelu:")
}

// keepWhereOut keeps the sums where tile.out is above 0, and clears the others.
func (w *tileWriter) keepWhereOut() {
	w.op("MOVQ tile_out(%s), %s", regTile, regB)
	w.op("TESTQ %s, %s", regB, regB)
	w.op("JEQ noout")
	w.op("MOVQ tile_outRow(%s), %s", regTile, regBS)
	w.clear(w.zero)
	for r := range w.rows {
		for v := range w.vectors {
			// 17 is less than, ordered, quiet: 0 < out.
			switch {
			case w.s.masked:
				w.load(w.mem(regB, v), v, w.spare)
				w.op("VCMPPS $17, %s, %s, %s", w.spare, w.zero, w.spare)
				w.op("VANDPS %s, %s, %s", w.spare, w.acc(r, v), w.acc(r, v))
			case w.masked && v == w.vectors-1:
				w.op("VCMPPS $17, %s, %s, %s, K2", w.mem(regB, v), w.zero, w.mask)
				w.op("VMOVAPS.Z %s, K2, %s", w.acc(r, v), w.acc(r, v))
			default:
				w.op("VCMPPS $17, %s, %s, K2", w.mem(regB, v), w.zero)
				w.op("VMOVAPS.Z %s, K2, %s", w.acc(r, v), w.acc(r, v))
			}
		}
		if r < w.rows-1 {
			w.op("ADDQ %s, %s", regBS, regB)
		}
	}
	w.line("noout:")
}

func (w *tileWriter) storeC() {
	for r := range w.rows {
		for v := range w.vectors {
			w.store(w.acc(r, v), v, w.mem(regC, v))
		}
		if r < w.rows-1 {
			w.op("ADDQ %s, %s", regLDC, regC)
		}
	}
}
