package optim

// Param is one dense parameter of a model: its values and, after a backward pass, their gradient.
// The length of Data and Grad is the product of Shape. They stay in place for the life of the
// model, except for SwapAverages. Parameters of an outline, which says what a model would take,
// have neither.
type Param struct {
	Name  string
	Shape []int
	Data  []float32
	Grad  []float32
}

// Size returns the number of values of the parameter.
func (p *Param) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// outlined reports whether the parameter belongs to an outline.
func (p *Param) outlined() bool { return p.Data == nil && p.Grad == nil }
