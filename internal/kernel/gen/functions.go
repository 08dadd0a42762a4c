package main

import (
	"fmt"
	"math"
)

// The functions of float64 in exp.go, log.go and sigmoid.go, four at a time:
// the same operations in the same order, so the same bits. Constants lie in a
// table, each repeated over a vector.

type constants struct {
	names  []string
	values []uint64
}

// at returns the operand for a constant, given by its bits.
func (c *constants) at(name string, bits uint64) string {
	for i, n := range c.names {
		if n == name {
			return fmt.Sprintf("functionTable<>+%d(SB)", 32*i)
		}
	}
	c.names = append(c.names, name)
	c.values = append(c.values, bits)
	return fmt.Sprintf("functionTable<>+%d(SB)", 32*(len(c.names)-1))
}

func (c *constants) float(name string, v float64) string { return c.at(name, math.Float64bits(v)) }

func (c *constants) write(asm *file) {
	asm.line("")
	for i, v := range c.values {
		asm.line("// %s", c.names[i])
		for lane := range 4 {
			asm.line("DATA functionTable<>+%d(SB)/8, $%#016x", 32*i+8*lane, v)
		}
	}
	asm.line("GLOBL functionTable<>(SB), RODATA|NOPTR, $%d", 32*len(c.values))
}

const expLimit = 128 // as in exp.go

// horner sets Y(p) to the polynomial in Y(x) with the coefficients 1/d, highest
// degree first. Products and sums are rounded separately.
func horner(f *file, c *constants, x, p int, denominators ...float64) {
	coefficient := func(d float64) string { return c.float(fmt.Sprintf("1/%g", d), 1/d) }
	f.op("VMULPD %s, Y%d, Y%d", coefficient(denominators[0]), x, p)
	for i, d := range denominators[1:] {
		if i > 0 {
			f.op("VMULPD Y%d, Y%d, Y%d", p, x, p)
		}
		f.op("VADDPD %s, Y%d, Y%d", coefficient(d), p, p)
	}
}

// expm1Reduced takes x in Y0 and leaves scale in Y1 and q in Y2; it changes Y3
// and Y4.
func expm1Reduced(f *file, c *constants) {
	f.op("VMULPD %s, Y0, Y1", c.float("log2(e)", math.Log2E))
	f.op("VADDPD %s, Y1, Y1", c.float("3·2^51", 3<<51))
	f.op("VSUBPD %s, Y1, Y2", c.float("3·2^51", 3<<51)) // n
	f.op("VMULPD %s, Y2, Y2", c.float("ln 2", math.Ln2))
	f.op("VSUBPD Y2, Y0, Y2") // r
	horner(f, c, 2, 3, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2)
	f.op("VMULPD Y2, Y2, Y4")
	f.op("VMULPD Y3, Y4, Y4")
	f.op("VADDPD Y4, Y2, Y2")
	// The low bits of n + 3·2^51 are those of n: they become the exponent.
	f.op("VPSLLQ $52, Y1, Y1")
	f.op("VPADDQ %s, Y1, Y1", c.float("1", 1))
}

// exp64 takes x in Y0 and leaves e^x in Y0.
func exp64(f *file, c *constants) {
	expm1Reduced(f, c)
	f.op("VMULPD Y2, Y1, Y2")
	f.op("VADDPD Y2, Y1, Y0")
}

// clamp limits Y0 to ±expLimit. VMINPD and VMAXPD return their last source,
// here Y0, where it is NaN.
func clamp(f *file, c *constants) {
	f.op("VMOVUPD %s, Y1", c.float("-128", -expLimit))
	f.op("VMAXPD Y0, Y1, Y0")
	f.op("VMOVUPD %s, Y1", c.float("128", expLimit))
	f.op("VMINPD Y0, Y1, Y0")
}

func functionSigmoid(f *file, c *constants) {
	f.op("VXORPD %s, Y0, Y0", c.at("sign", 1<<63))
	clamp(f, c)
	exp64(f, c)
	f.op("VMOVUPD %s, Y1", c.float("1", 1))
	f.op("VADDPD Y0, Y1, Y0")
	f.op("VDIVPD Y0, Y1, Y0")
}

func functionTanh(f *file, c *constants) {
	f.op("VANDPD %s, Y0, Y5", c.at("sign", 1<<63))
	f.op("VXORPD Y5, Y0, Y0")
	f.op("VADDPD Y0, Y0, Y0")
	f.op("VMOVUPD %s, Y1", c.float("128", expLimit))
	f.op("VMINPD Y0, Y1, Y0")
	expm1Reduced(f, c)
	f.op("VMULPD Y2, Y1, Y2")
	f.op("VSUBPD %s, Y1, Y1", c.float("1", 1))
	f.op("VADDPD Y2, Y1, Y0")
	f.op("VADDPD %s, Y0, Y1", c.float("2", 2))
	f.op("VDIVPD Y1, Y0, Y0")
	f.op("VORPD Y5, Y0, Y0")
}

func functionSoftplus(f *file, c *constants) {
	f.op("VXORPD Y6, Y6, Y6")
	f.op("VMAXPD Y0, Y6, Y5") // max(x, 0), NaN if x is
	f.op("VANDPD %s, Y0, Y0", c.at("all but the sign", 1<<63-1))
	f.op("VMOVUPD %s, Y1", c.float("128", expLimit))
	f.op("VMINPD Y0, Y1, Y0")
	f.op("VXORPD %s, Y0, Y0", c.at("sign", 1<<63))
	exp64(f, c) // u
	// log1p64: where u > √2-1 (30: greater, ordered, quiet), d = (u-1)/2 and
	// ln 2 is added.
	f.op("VCMPPD $30, %s, Y0, Y1", c.float("√2-1", math.Sqrt2-1))
	f.op("VSUBPD %s, Y0, Y2", c.float("1", 1))
	f.op("VMULPD %s, Y2, Y2", c.float("1/2", 0.5))
	f.op("VBLENDVPD Y1, Y2, Y0, Y0") // d
	f.op("VANDPD %s, Y1, Y6", c.float("ln 2", math.Ln2))
	f.op("VADDPD %s, Y0, Y1", c.float("2", 2))
	f.op("VDIVPD Y1, Y0, Y1") // s
	f.op("VMULPD Y1, Y1, Y2") // z
	horner(f, c, 2, 3, 19, 17, 15, 13, 11, 9, 7, 5, 3)
	f.op("VMULPD Y3, Y2, Y3")
	f.op("VMULPD Y3, Y1, Y3")
	f.op("VADDPD Y3, Y1, Y1")
	f.op("VADDPD Y1, Y1, Y1")
	f.op("VADDPD Y1, Y6, Y1")
	f.op("VADDPD Y1, Y5, Y0")
}

func writeFunctions(asm, stubs *file) {
	c := new(constants)
	for _, fn := range []struct {
		name string
		body func(f *file, c *constants)
	}{
		{"sigmoidAVX2", functionSigmoid},
		{"tanhAVX2", functionTanh},
		{"softplusAVX2", functionSoftplus},
	} {
		signature := fmt.Sprintf("func %s(dst, src *float32, n int)", fn.name)
		stubs.line("")
		stubs.line("//go:noescape")
		stubs.line("%s", signature)
		asm.line("")
		asm.line("// %s", signature)
		asm.line("TEXT ·%s(SB), NOSPLIT, $0-24", fn.name)
		asm.op("MOVQ dst+0(FP), DI")
		asm.op("MOVQ src+8(FP), SI")
		asm.op("MOVQ n+16(FP), CX")
		asm.line("loop:")
		asm.op("VCVTPS2PD (SI), Y0")
		fn.body(asm, c)
		asm.op("VCVTPD2PSY Y0, X0")
		asm.op("VMOVUPS X0, (DI)")
		asm.op("ADDQ $16, SI")
		asm.op("ADDQ $16, DI")
		asm.op("SUBQ $4, CX")
		asm.op("JGT loop")
		asm.op("VZEROUPPER")
		asm.op("RET")
	}
	c.write(asm)
}
