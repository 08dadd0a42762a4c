package layout

import (
	"fmt"
	"slices"
	"strings"

	"aibox/internal/half"
)

// ValueFormat is the encoding of the values of rows. The state of the row optimizer
// is float32 in all of them.
//
// In the 16-bit formats a cache of the same size holds up to twice as many rows. Training computes
// in float32 and rounds stochastically when it stores values, so that updates below a format's
// precision still add up.
type ValueFormat uint8

const (
	Float32  ValueFormat = iota // 4 bytes a value
	Float16                     // 2 bytes: 11 bits of precision down to 6e-5, less below; up to 65504
	BFloat16                    // 2 bytes: 8 bits of precision, the range of float32

	valueFormats // the number of formats
)

// The numbers of the formats are written to files, so they must not change.
var valueFormatNames = [valueFormats]string{Float32: "float32", Float16: "float16", BFloat16: "bfloat16"}

// ValueFormats lists the names that ParseValueFormat knows.
func ValueFormats() []string { return slices.Clone(valueFormatNames[:]) }

// ParseValueFormat returns the format of the given name.
func ParseValueFormat(name string) (ValueFormat, error) {
	if i := slices.Index(valueFormatNames[:], name); i >= 0 {
		return ValueFormat(i), nil
	}
	return 0, fmt.Errorf("sparsetable: unknown value format %q: want %s", name, strings.Join(valueFormatNames[:], ", "))
}

// String is the format's name.
func (f ValueFormat) String() string {
	if f < valueFormats {
		return valueFormatNames[f]
	}
	return fmt.Sprintf("ValueFormat(%d)", uint8(f))
}

// MarshalText implements encoding.TextMarshaler: the format's name.
func (f ValueFormat) MarshalText() ([]byte, error) {
	if f >= valueFormats {
		return nil, fmt.Errorf("sparsetable: unknown value format %d", uint8(f))
	}
	return []byte(f.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *ValueFormat) UnmarshalText(text []byte) (err error) {
	*f, err = ParseValueFormat(string(text))
	return err
}

// Rounding is the source of the random bits of StoreValues. They are a function of
// seed, update, key and position, so that neither the cache nor threads nor timing
// affect what is stored.
type Rounding struct{ bits half.Rounding }

// NewRounding returns the random bits of update n, say the n-th step of
// training. A row must not be updated twice with the same seed and n, because the
// errors of the two roundings would not be independent.
func NewRounding(seed, n uint64) Rounding { return Rounding{half.NewRounding(seed, n)} }
