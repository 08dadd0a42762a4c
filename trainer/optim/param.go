package optim

// Param is one dense parameter of a model: its values and, after a backward
// pass, their gradient. Data and Grad have the product of Shape as length and
// stay where they are for the life of the model, but for Dense.SwapAverages. Parameters of an
// outline, which says what a model would take, have neither.
type Param struct {
	Name  string
	Shape []int
	Data  []float32
	Grad  []float32
}

// Size is how many values the parameter has.
func (p *Param) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// outlined reports whether the parameter is one of an outline.
func (p *Param) outlined() bool { return p.Data == nil && p.Grad == nil }
