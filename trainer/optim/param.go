package optim

// Param is one dense parameter of a model: its values and, after a backward
// pass, their gradient. Data and Grad have the product of Shape as length and
// stay where they are for the life of the model, but for Dense.SwapAverages.
type Param struct {
	Name  string
	Shape []int
	Data  []float32
	Grad  []float32
}
