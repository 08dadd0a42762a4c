package kernel

// Formula is the kind of an Update.
type Formula uint8

// The numbers of the formulas are those of the kernels for devices, too.
const (
	FormulaSGD Formula = iota
	FormulaMomentum
	FormulaAdagrad
	FormulaRowwiseAdagrad // Adagrad with one sum for all values of a row: the mean of their squares
	FormulaAdam
	FormulaFTRL
)

// Slots is the number of state numbers per value; with FormulaRowwiseAdagrad, per row.
func (f Formula) Slots() int { return [...]int{0, 1, 1, 1, 2, 2}[f] }

// Update is an optimizer step as data, executed by the CPU or a device: a formula and its
// constants, of which each formula uses its own. The formulas are those of the types SGD, Momentum,
// Adagrad, Adam and FTRL.
type Update struct {
	Formula Formula
	Shrink  float32 // what the values are multiplied by before all else; 1: they are not

	L2, Rate            float32 // Rate is also Adam's Size and FTRL's Alpha
	Epsilon             float32 // Adagrad, Adam
	Momentum            float32
	Beta2, Rest1, Rest2 float32 // Adam
	Scale               float32 // Adam
	Beta                float32 // FTRL
	Lambda1, Lambda2    float32 // FTRL
}

// Step updates the values w with gradients g and state first and second, whose lengths follow from
// Formula.Slots.
func (u *Update) Step(w, g, first, second []float32) {
	if u.Shrink != 1 {
		Scale(u.Shrink, w)
	}
	switch u.Formula {
	case FormulaSGD:
		(&SGD{L2: u.L2, Rate: u.Rate}).Step(w, g)
	case FormulaMomentum:
		(&Momentum{L2: u.L2, Rate: u.Rate, Momentum: u.Momentum}).Step(w, g, first)
	case FormulaAdagrad:
		(&Adagrad{L2: u.L2, Rate: u.Rate, Epsilon: u.Epsilon}).Step(w, g, first)
	case FormulaRowwiseAdagrad:
		u.rowwise(w, g, first)
	case FormulaAdam:
		a := Adam{L2: u.L2, Beta2: u.Beta2, Rest1: u.Rest1, Rest2: u.Rest2, Size: u.Rate, Scale: u.Scale, Epsilon: u.Epsilon}
		a.Step(w, g, first, second)
	case FormulaFTRL:
		u.FTRL().Step(w, g, first, second)
	}
}

// FTRL returns the update as an FTRL step. REQUIRES: its formula is FTRL.
func (u *Update) FTRL() *FTRL {
	return &FTRL{L2: u.L2, Alpha: u.Rate, Beta: u.Beta, Lambda1: u.Lambda1, Lambda2: u.Lambda2}
}

// rowwise is Adagrad with one accumulator, the mean over the row of the
// squared gradient, summed from the first value to the last (FBGEMM's exact
// row-wise Adagrad).
func (u *Update) rowwise(w, g, s []float32) {
	g = g[:len(w)]
	sum := float32(0)
	for i := range w {
		d := g[i] + float32(u.L2*w[i])
		sum += float32(d * d)
	}
	s[0] += sum / float32(len(w))
	denom := Sqrt(s[0]) + u.Epsilon
	for i := range w {
		d := g[i] + float32(u.L2*w[i])
		w[i] -= float32(u.Rate*d) / denom
	}
}
