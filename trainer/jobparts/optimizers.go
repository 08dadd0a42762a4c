package jobparts

import (
	"aibox/configs"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// NewDense returns the optimizer of the dense parameters of a job.
func NewDense(job *configs.Job, params []*optim.Param) (*optim.Dense, error) {
	return optim.NewDense(denseConfig(job.Optimizer.Dense), params, linearOptimizer(job)...)
}

func denseConfig(o configs.DenseOptimizer) optim.DenseConfig {
	return optim.DenseConfig{
		Kind: o.Kind, LearningRate: o.LearningRate, Momentum: o.Momentum, Beta1: o.Beta1, Beta2: o.Beta2,
		Epsilon: o.Epsilon, InitialAccumulator: o.InitialAccumulator, L2: o.L2, WeightDecay: o.WeightDecay,
		Averaging: o.Averaging,
	}
}

// rowConfig converts the options of an optimizer of rows or of linear weights.
func rowConfig(o configs.RowOptimizer) optim.RowConfig {
	return optim.RowConfig{
		Kind: o.Kind, LearningRate: o.LearningRate, Beta1: o.Beta1, Beta2: o.Beta2,
		Epsilon: o.Epsilon, InitialAccumulator: o.InitialAccumulator, L2: o.L2, WeightDecay: o.WeightDecay, TableL2: o.TableL2,
		FTRLL1: o.FTRLL1, FTRLL2: o.FTRLL2, FTRLBeta: o.FTRLBeta,
	}
}

// linearOptimizer returns the optimizer of the linear weights of dense features, if they have one
// of their own.
func linearOptimizer(job *configs.Job) []optim.Own {
	if job.Optimizer.Linear == nil {
		return nil
	}
	return []optim.Own{{Param: model.LinearWeight, Config: rowConfig(*job.Optimizer.Linear)}}
}

// ScheduleConfig converts the schedule of a job's learning rates.
func ScheduleConfig(s configs.Schedule) optim.ScheduleConfig {
	return optim.ScheduleConfig{
		WarmupSteps: s.WarmupSteps, Decay: s.Decay, DecaySteps: s.DecaySteps, DecayRate: s.DecayRate, Floor: s.Floor,
	}
}

// DenseKind returns the kind of optimizer of a dense parameter.
func DenseKind(job *configs.Job, param string) string {
	for _, own := range linearOptimizer(job) {
		if own.Param == param {
			return own.Config.Kind
		}
	}
	return job.Optimizer.Dense.Kind
}
