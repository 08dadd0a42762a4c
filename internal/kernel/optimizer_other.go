//go:build !amd64

package kernel

func (c *SGD) vector(w, g []float32) int         { return 0 }
func (c *Momentum) vector(w, g, b []float32) int { return 0 }
func (c *Adagrad) vector(w, g, s []float32) int  { return 0 }
func (c *Adam) vector(w, g, m, v []float32) int  { return 0 }
