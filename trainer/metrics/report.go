package metrics

import "aibox/internal/score"

// Value is a figure that may be undefined, as an AUC with only one class or a mean of nothing.
// Undefined is NaN, in JSON null; see Defined.
type Value = score.Value

// Report is the result of an Accumulator.
type Report struct {
	Examples       int64   `json:"examples"`
	WeightSum      float64 `json:"weight_sum"`      // sum over all examples
	Positives      float64 `json:"positives"`       // sum of the weights of positives
	BaseRate       Value   `json:"base_rate"`       // Positives / WeightSum
	MeanPrediction Value   `json:"mean_prediction"` // mean predicted probability, after LogitShift
	COPC           Value   `json:"copc"`            // clicks / predicted clicks; above 1: predictions too low

	LogLoss           Value `json:"log_loss"`           // mean, nats
	NormalizedEntropy Value `json:"normalized_entropy"` // LogLoss / entropy of BaseRate; below 1 is better than the base rate

	AUC      Value `json:"auc"` // exact if AUCExact, else StreamingAUC
	AUCExact bool  `json:"auc_exact"`
	AUCError Value `json:"auc_error"` // bound on the difference between AUC and the exact AUC

	StreamingAUC      Value `json:"streaming_auc"`
	StreamingAUCError Value `json:"streaming_auc_error"` // bound on the difference between StreamingAUC and the exact AUC

	GroupAUC   Value   `json:"group_auc"`   // mean over the groups with both classes, by impressions; undefined if not asked for
	Groups     int     `json:"groups"`      // groups considered
	GroupsUsed int     `json:"groups_used"` // those with both classes
	GroupShare float64 `json:"group_share"` // share of all groups that were considered; 0 if not asked for
}

// Scalar is one named figure for EventWriter.
type Scalar struct {
	Tag   string
	Value float64
}

// Scalars lists the defined figures of the report as prefix/name, for TensorBoard, which makes
// prefix (train, eval) a section of the page.
func (r Report) Scalars(prefix string) []Scalar {
	var list []Scalar
	for _, s := range []struct {
		name  string
		value Value
	}{
		{"auc", r.AUC}, {"log_loss", r.LogLoss}, {"normalized_entropy", r.NormalizedEntropy},
		{"copc", r.COPC}, {"base_rate", r.BaseRate}, {"mean_prediction", r.MeanPrediction}, {"group_auc", r.GroupAUC},
	} {
		if s.value.Defined() {
			list = append(list, Scalar{prefix + "/" + s.name, float64(s.value)})
		}
	}
	return list
}
