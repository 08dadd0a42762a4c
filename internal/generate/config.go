package generate

import (
	"errors"
	"fmt"
	"math"
)

// MaxCardinality bounds the number of values of a field, because ranks are computed as
// float64.
const MaxCardinality = 1 << 52

// Config is the known model. Every field of it influences the result: two logs are equal
// if and only if their configurations are equal, except for names.
type Config struct {
	Seed                uint64
	Fields              []Field
	DenseColumns        int
	BaseRate            float64 // share of positives, in (0,1)
	LinearStrength      float64 // standard deviation of the linear part of the logit
	InteractionStrength float64 // standard deviation of the pairwise part
	LatentDim           int     // of the vectors behind the pairwise part; not used when its strength is 0
	DriftPerDay         float64 // share of the variance of effects that changes per day, in [0,1]
	MissingRate         float64 // share of empty cells, in [0,1)
}

// Field is one sparse field.
type Field struct {
	Name        string
	Cardinality int64   // number of different values, up to MaxCardinality
	Skew        float64 // exponent of the power law, at least 0; 0: all values equally often
	MaxValues   int     // an example draws 1 to MaxValues values, repeated ones dropped; 0 means 1
}

// check lists every fault of the configuration.
func (c *Config) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("generate: "+format, args...)) }
	if len(c.Fields) == 0 && c.DenseColumns == 0 {
		fault("there are no fields and no dense columns")
	}
	seen := map[string]int{}
	varied := 0
	for i, f := range c.Fields {
		if f.Name == "" {
			fault("field %d has no name", i)
		} else if first, ok := seen[f.Name]; ok {
			fault("fields %d and %d are both called %q", first, i, f.Name)
		}
		seen[f.Name] = i
		if f.Cardinality < 1 || f.Cardinality > MaxCardinality {
			fault("field %q: cardinality %d is outside [1,2^52]", f.Name, f.Cardinality)
		}
		if !(f.Skew >= 0 && f.Skew <= 100) {
			fault("field %q: skew %v is outside [0,100]", f.Name, f.Skew)
		}
		if f.MaxValues < 0 || f.MaxValues > 1<<12 {
			fault("field %q: max_values %d is outside [1,4096]", f.Name, f.MaxValues)
		}
		if f.Cardinality > 1 {
			varied++
		}
	}
	if c.DenseColumns < 0 {
		fault("dense_columns %d is negative", c.DenseColumns)
	}
	if !(c.BaseRate > 0 && c.BaseRate < 1) {
		fault("base_rate %v is outside (0,1)", c.BaseRate)
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"linear_strength", c.LinearStrength}, {"interaction_strength", c.InteractionStrength}} {
		if !(s.value >= 0 && s.value <= 1000) {
			fault("%s %v is outside [0,1000]", s.name, s.value)
		}
	}
	if c.LinearStrength > 0 && varied == 0 && c.DenseColumns == 0 {
		fault("linear_strength %v needs a dense column or a field of more than one value", c.LinearStrength)
	}
	if c.InteractionStrength > 0 {
		if varied < 2 {
			fault("interaction_strength %v needs two fields of more than one value", c.InteractionStrength)
		}
		if c.LatentDim < 1 || c.LatentDim > 1<<16 {
			fault("latent_dim %d is outside [1,65536]", c.LatentDim)
		}
	}
	if !(c.DriftPerDay >= 0 && c.DriftPerDay <= 1) {
		fault("drift_per_day %v is outside [0,1]", c.DriftPerDay)
	}
	if !(c.MissingRate >= 0 && c.MissingRate < 1) {
		fault("missing_rate %v is outside [0,1)", c.MissingRate)
	}
	return errors.Join(faults...)
}

// meanValues is the mean number of values that an example draws.
func (f *Field) meanValues() float64 { return (1 + math.Max(1, float64(f.MaxValues))) / 2 }
