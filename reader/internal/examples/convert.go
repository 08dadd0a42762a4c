package examples

import (
	"unicode/utf8"

	"aibox/reader/internal/hashes"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/number"
	"aibox/reader/rowschema"
)

// conversion says what the values of a simple column of Parquet become.
type conversion struct {
	isKey  bool
	seed   uint64                // of keys
	steps  []rowschema.Transform // of dense features
	binary bool                  // numbers other than 0 and 1 are slow
	text   []byte                // of a number that is used as a feature
}

// Convert implements parquetcolumn.Converter. Every faulty value is slow.
func (c *conversion) Convert(v *parquetcolumn.Values, at []int32, out []parquetcolumn.Result) {
	clear(out)
	switch {
	case !c.isKey:
		for i, p := range at {
			if p >= 0 {
				out[i].Number, out[i].State = c.number(v.Number(int(p)))
			}
		}
	case v.Texts():
		c.convertTexts(v, at, out)
	default:
		for i, p := range at {
			if p >= 0 {
				c.text = v.AppendNumber(c.text[:0], int(p))
				out[i].Key, out[i].State = hashes.In(c.seed, c.text), parquetcolumn.Ready
			}
		}
	}
}

func (c *conversion) convertTexts(v *parquetcolumn.Values, at []int32, out []parquetcolumn.Result) {
	valid := v.Valid()
	for i, p := range at {
		if p < 0 {
			continue
		}
		text := v.Text(int(p))
		switch {
		case len(text) == 0: // an empty value is a missing one
		case !valid && !utf8.Valid(text):
			out[i].State = parquetcolumn.Slow
		default:
			out[i] = parquetcolumn.Result{Key: hashes.In(c.seed, text), State: parquetcolumn.Ready}
		}
	}
}

// number is a number as a dense feature or a label.
func (c *conversion) number(x float64) (float32, parquetcolumn.State) {
	if c.binary {
		switch x {
		case 0:
			return 0, parquetcolumn.Ready
		case 1:
			return 1, parquetcolumn.Ready
		}
		return 0, parquetcolumn.Slow
	}
	if !number.Finite(x) {
		return 0, parquetcolumn.Slow
	}
	y := float32(rowschema.Transformed(c.steps, x))
	if !number.Finite(float64(y)) {
		return 0, parquetcolumn.Slow
	}
	return y, parquetcolumn.Ready
}
