package generate

import (
	"math"

	"aibox/internal/fixmath"
	"aibox/internal/score"
)

// Truth says how well the true probabilities predict the labels that were drawn from them.
// A model can only be better by chance.
type Truth struct {
	Examples          int64       `json:"examples"`
	Positives         int64       `json:"positives"`
	BaseRate          score.Value `json:"base_rate"`
	MeanProbability   score.Value `json:"mean_probability"`
	AUC               score.Value `json:"auc"`
	AUCError          score.Value `json:"auc_error"`         // AUC differs from the exact one by at most this
	LogLoss           score.Value `json:"log_loss"`          // mean, nats
	ExpectedLogLoss   score.Value `json:"expected_log_loss"` // mean entropy of the probabilities: the expected value of LogLoss
	NormalizedEntropy score.Value `json:"normalized_entropy"`
}

// Meter adds up Truth over blocks, also of several calls of Generate and
// several days, in fixed memory. It belongs to one goroutine.
type Meter struct {
	loss    score.Loss
	entropy score.Sum
	hist    *score.Histogram
}

// NewMeter returns an empty Meter.
func NewMeter() *Meter { return &Meter{hist: score.NewHistogram(0)} }

// Add adds the examples of a block.
func (m *Meter) Add(b *Block) {
	for i, logit := range b.Logits {
		positive := b.Labels[i] == 1
		m.loss.Add(score.NewTerm(logit, positive), 1)
		m.entropy.Add(entropyOf(logit))
		m.hist.Add(float32(logit), positive, 1)
	}
}

// entropyOf is the entropy of a label of this logit: with q the smaller of the
// two probabilities, -log(1-q) = softplus(-|logit|) and -log q is |logit| more.
func entropyOf(logit float64) float64 {
	a := math.Abs(logit)
	return fixmath.Softplus(-a) + float64(fixmath.Sigmoid(-a)*a)
}

// Truth returns the measures so far.
func (m *Meter) Truth() Truth {
	auc, bound := m.hist.AUC()
	return Truth{
		Examples:          m.loss.Examples(),
		Positives:         int64(m.loss.Positives()),
		BaseRate:          score.Value(m.loss.BaseRate()),
		MeanProbability:   score.Value(m.loss.MeanPrediction()),
		AUC:               score.Value(auc),
		AUCError:          score.Value(bound),
		LogLoss:           score.Value(m.loss.LogLoss()),
		ExpectedLogLoss:   score.Value(m.entropy.Value() / m.loss.Weight()),
		NormalizedEntropy: score.Value(m.loss.NormalizedEntropy()),
	}
}
