package number_test

import (
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"strings"
	"testing"

	"aibox/reader/number"
)

var texts = []string{
	"", "-", "+", ".", "0", "-0", "+0", "1", "-1", "00012", "3.5", ".5", "5.", "1e3", "1E-3", "1e+3", "1e", "1e+",
	"1.2.3", "12a", " 1", "1 ", "nan", "NaN", "inf", "-Inf", "0x10", "0x1p-2", "1_000", "1e400", "-1e400", "1e-400",
	"9007199254740992", "9007199254740993", "18446744073709551616", "123456789012345678901234567890",
	"3.4028235e38", "3.4028236e38", "1.17549435e-38", "1e-45", "7e-46", "16777217", "16777217.0000000001",
	"1.00000005960464477539062", "1.0000000596046448", "0.1", "0.30000001192092896", "2.5e-22", "1e22", "1e23",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e00000000000000001", "1e-00022",
}

// parseFloat is strconv's for decimal numbers alone.
func parseFloat(text string, bits int) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, bits)
}

func check(t *testing.T, text string) {
	t.Helper()
	f64, err := parseFloat(text, 64)
	if got, ok := number.Float64([]byte(text)); ok != (err == nil) || (ok && math.Float64bits(got) != math.Float64bits(f64)) {
		t.Errorf("Float64(%q) = %v %v, strconv says %v %v", text, got, ok, f64, err)
	}
	f32, err := parseFloat(text, 32)
	if got, ok := number.Float32([]byte(text)); ok != (err == nil) || (ok && math.Float32bits(got) != math.Float32bits(float32(f32))) {
		t.Errorf("Float32(%q) = %v %v, strconv says %v %v", text, got, ok, f32, err)
	}
	i64, err := strconv.ParseInt(text, 10, 64)
	if got, ok := number.Int64([]byte(text)); ok != (err == nil) || (ok && got != i64) {
		t.Errorf("Int64(%q) = %v %v, strconv says %v %v", text, got, ok, i64, err)
	}
}

func TestEqualsStrconv(t *testing.T) {
	for _, text := range texts {
		check(t, text)
	}
	r := rand.New(rand.NewSource(1))
	for range 50_000 {
		// Halfway cases of float32 are where rounding twice would show.
		half := float64(math.Float32frombits(r.Uint32()&0x7fffffff)) + 0
		bits := math.Float64bits(half)&^(1<<29-1) | 1<<28
		check(t, strconv.FormatFloat(math.Float64frombits(bits), 'g', 1+r.Intn(20), 64))
		check(t, fmt.Sprintf("%d.%d", r.Intn(1000), r.Intn(1_000_000)))
		check(t, fmt.Sprintf("%de%d", r.Int63n(1<<56), r.Intn(60)-30))
	}
}

func TestNoGarbage(t *testing.T) {
	cells := [][]byte{[]byte("17"), []byte("-3.25"), []byte("1e30"), []byte("3.40282346638528859811704183484516925e+38")}
	if n := testing.AllocsPerRun(100, func() {
		for _, c := range cells {
			number.Float32(c)
			number.Float64(c)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTrim(t *testing.T) {
	for in, want := range map[string]string{"": "", " ": "", " \t1 2\t ": "1 2", "x": "x"} {
		if got := string(number.Trim([]byte(in))); got != want {
			t.Errorf("Trim(%q) = %q", in, got)
		}
	}
}

func FuzzEqualsStrconv(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

func BenchmarkFloat32(b *testing.B) {
	cell := []byte("1234.5")
	for b.Loop() {
		number.Float32(cell)
	}
}
