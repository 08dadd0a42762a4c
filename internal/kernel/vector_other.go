//go:build !amd64

package kernel

func addVector(dst, a []float32)                    { addPortable(dst, a) }
func mulVector(dst, a, b []float32)                 { mulPortable(dst, a, b) }
func mulThenAddVector(dst, a, b, c []float32)       { mulThenAddPortable(dst, a, b, c) }
func scaleVector(dst, src []float32, alpha float32) { scalePortable(dst, src, alpha) }
func axpyVector(y, x []float32, alpha float32)      { axpyPortable(y, x, alpha) }
func reluVector(dst, src []float32)                 { reluPortable(dst, src) }
func reluBackwardVector(dst, grad, out []float32)   { reluBackwardPortable(dst, grad, out) }
func sumLanes(l *[lanes]float32, x []float32)       { sumLanesPortable(l, x) }
func dotLanes(l *[lanes]float32, a, b []float32)    { dotLanesPortable(l, a, b) }

func sigmoidBackwardVector(dst, grad, out []float32) { sigmoidBackwardPortable(dst, grad, out) }
func tanhBackwardVector(dst, grad, out []float32)    { tanhBackwardPortable(dst, grad, out) }
func sigmoidVector(dst, src []float32)               { sigmoidPortable(dst, src) }
func tanhVector(dst, src []float32)                  { tanhPortable(dst, src) }
func softplusVector(dst, src []float32)              { softplusPortable(dst, src) }

// prefetch does nothing: processors without assembler here have their own prefetchers.
func prefetch(x *float32, n int) {}
