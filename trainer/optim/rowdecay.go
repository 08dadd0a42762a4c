package optim

// DecayRates are learning rate times weight decay: of the linear weight if that has an optimizer of
// its own, otherwise of the first value as of the rest, and of the other values.
func (r *Rows) DecayRates() (first, rest float64) {
	return r.rates(func(c *RowConfig) float64 { return c.WeightDecay })
}

// TableL2Rates are learning rate times the L2 penalty of all rows, in the same order.
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

// Decays reports whether rows decay, so that each has a clock behind the words of StateDim.
func (r *Rows) Decays() bool {
	first, rest := r.DecayRates()
	firstL2, restL2 := r.TableL2Rates()
	return first > 0 || rest > 0 || firstL2 > 0 || restL2 > 0
}

// Accumulators are words of a row's state with Adagrad's sums of squared gradients, from word From
// up to To, of values that share a denominator: the root of the mean of the sums, plus Epsilon.
type Accumulators struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Epsilon float64 `json:"epsilon"`
}

// Accumulators are those of the first value of a row and those of the others; of neither if its
// kind is not adagrad or rowwise_adagrad. The first value is the linear weight of models that have
// one, whose gradients are far larger.
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
