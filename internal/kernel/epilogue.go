package kernel

// Epilogue is what a matrix product does to each element of C once its chain is complete,
// while the element is still in a register or in the nearest cache. The steps come in the
// order of the fields; the operations are those of Add, Relu, Sigmoid and Tanh, and of
// ReluBackward, SigmoidBackward and TanhBackward. The zero value does nothing.
type Epilogue struct {
	// Bias[j] is added to each element of column j; nil adds nothing.
	Bias []float32

	// Activation is applied then.
	Activation Activation

	// Derivative is an activation whose derivative multiplies element (i, j) then: the one
	// that returned Output[i*OutputStride+j]. A layer's input gradient becomes the gradient
	// of the sums below that input in this way.
	Derivative   Activation
	Output       []float32
	OutputStride int
}

// check panics unless e fits a matrix (m, n).
func (e *Epilogue) check(function string, m, n int) {
	if e == nil {
		return
	}
	if e.Bias != nil {
		sameLength(function, n, len(e.Bias))
	}
	if e.Derivative != ActivationNone {
		checkMatrix(function, "output", m, n, len(e.Output), e.OutputStride)
	}
}

// empty tells whether e does nothing.
func (e *Epilogue) empty() bool {
	return e == nil || e.Bias == nil && e.Activation == ActivationNone && e.Derivative == ActivationNone
}

// of returns e for a part of C with n columns.
func (e *Epilogue) of(row, column, n int) Epilogue {
	part := *e
	if e.Bias != nil {
		part.Bias = e.Bias[column:][:n]
	}
	if e.Derivative != ActivationNone {
		part.Output = e.Output[row*e.OutputStride+column:]
	}
	return part
}

// finishRow applies e to row, columns from column on of row i of C.
func (e *Epilogue) finishRow(i, column int, row []float32) {
	if e.Bias != nil {
		addRow(row, e.Bias[column:][:len(row)])
	}
	activate(e.Activation, row)
	if e.Derivative != ActivationNone {
		derive(e.Derivative, row, row, e.Output[i*e.OutputStride+column:][:len(row)])
	}
}
