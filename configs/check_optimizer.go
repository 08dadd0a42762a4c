package configs

import "aibox/configs/internal/yamltree"

// checkOptimizers checks weight_decay and table_l2, which apply to all rows of the table.
func (l *loader) checkOptimizers() {
	rows, linear := &l.job.Optimizer.Rows, l.job.Optimizer.Linear
	l.checkDecay("optimizer.rows", rows)
	if linear == nil {
		return
	}
	l.checkDecay("optimizer.linear", linear)
	const exclude = "%s has %s, and a row can have only one of weight_decay and table_l2: use the same one in both optimizers"
	switch {
	case !l.Sound("optimizer.rows", "optimizer.linear"):
	case rows.WeightDecay > 0 && linear.TableL2 > 0:
		l.FaultAt("optimizer.linear.table_l2", exclude, "optimizer.rows", "weight_decay")
	case rows.TableL2 > 0 && linear.WeightDecay > 0:
		l.FaultAt("optimizer.linear.weight_decay", exclude, "optimizer.rows", "table_l2")
	}
}

func (l *loader) checkDecay(path string, o *RowOptimizer) {
	if !l.Sound(path) {
		return
	}
	if o.LearningRate*o.WeightDecay >= 1 {
		l.FaultAt(path+".weight_decay", "%s times the learning rate, %s, must be below 1: a step multiplies rows by 1 minus that", yamltree.FormatFloat(o.WeightDecay), yamltree.FormatFloat(o.LearningRate))
	}
	if o.LearningRate*o.TableL2 >= 1 {
		l.FaultAt(path+".table_l2", "%s times the learning rate, %s, must be below 1", yamltree.FormatFloat(o.TableL2), yamltree.FormatFloat(o.LearningRate))
	}
	if o.WeightDecay > 0 && o.TableL2 > 0 {
		l.FaultAt(path+".table_l2", "weight_decay also regularizes all rows: remove one of the two")
	}
}
