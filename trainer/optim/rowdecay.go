package optim

// DecayRates returns learning rate times weight decay, of the first value and of the others. They
// differ only if the first value, a linear weight, has an optimizer of its own.
func (r *Rows) DecayRates() (first, rest float64) {
	return r.rates(func(c *RowConfig) float64 { return c.WeightDecay })
}

// TableL2Rates returns learning rate times the L2 penalty of all rows, in the same order.
func (r *Rows) TableL2Rates() (first, rest float64) {
	return r.rates(func(c *RowConfig) float64 { return c.TableL2 })
}

func (r *Rows) rates(of func(*RowConfig) float64) (first, rest float64) {
	rest = float64(r.cfg.LearningRate * of(&r.cfg))
	if r.linear != nil {
		first, _ = r.linear.rates(of)
		return first, rest
	}
	return rest, rest
}

// Decays reports whether rows decay. Then each has a clock after the words of StateDim.
func (r *Rows) Decays() bool {
	first, rest := r.DecayRates()
	firstL2, restL2 := r.TableL2Rates()
	return first > 0 || rest > 0 || firstL2 > 0 || restL2 > 0
}

// Accumulators are the words [From, To) of a row's state, which are Adagrad's sums of squared
// gradients for values that share a denominator: the root of the mean of the sums, plus Epsilon.
type Accumulators struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Epsilon float64 `json:"epsilon"`
}

// Accumulators returns the accumulators of the first value of a row and those of the others. They
// are empty for a kind other than adagrad and rowwise_adagrad. In models with a linear weight, that
// is the first value, whose gradients are far larger.
func (r *Rows) Accumulators() (first, rest Accumulators) {
	if r.linear != nil {
		first, _ = r.linear.Accumulators()
	}
	start, c := r.words, &r.cfg
	switch c.Kind {
	case "rowwise_adagrad":
		rest = Accumulators{start, start + 1, c.Epsilon}
	case "adagrad":
		rest = Accumulators{start, start + r.valueDim, c.Epsilon}
	default:
		return first, rest
	}
	if r.linear == nil {
		first = Accumulators{0, 1, c.Epsilon}
		if c.Kind == "adagrad" && r.valueDim > 1 {
			rest.From = 1
		}
	}
	return first, rest
}
