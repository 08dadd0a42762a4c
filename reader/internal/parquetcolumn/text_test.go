package parquetcolumn

import (
	"math"
	"testing"
)

func TestBigEndian(t *testing.T) {
	for _, c := range []struct {
		bytes []byte
		want  string
	}{
		{nil, "0"}, {[]byte{0xff}, "-1"}, {[]byte{0x7f}, "127"}, {[]byte{0x80, 0}, "-32768"},
		{[]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0}, "9223372036854775808"},
		{[]byte{0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}, "-9223372036854775808"},
		{[]byte{0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0}, "-9295429630892703744"},
		{append([]byte{0x80}, make([]byte, 15)...), "-170141183460469231731687303715884105728"},
	} {
		if got := string(appendBigEndian(nil, c.bytes)); got != c.want {
			t.Errorf("%x is %s, want %s", c.bytes, got, c.want)
		}
	}
}

func TestFloatsAsText(t *testing.T) {
	for want, x := range map[string]float64{
		"1005389": 1005389, "-20000000": -2e7, "1234567.25": 1234567.25, "0.1": 0.1, "1e+21": 1e21, "1e-07": 1e-7, "NaN": math.NaN(), "0": 0,
		"999999999999999900000": 999999999999999900000,
	} {
		if got := string(appendFloat(nil, x, 64)); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}

func TestFloat16(t *testing.T) {
	for bits, want := range map[uint16]float32{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 0x1p-24, 0x03ff: 0x3ffp-24, 0x0400: 0x1p-14, 0x3555: 0.33325195, 0x7c00: float32(math.Inf(1)),
	} {
		if got := float16([]byte{byte(bits), byte(bits >> 8)}); got != want {
			t.Errorf("%#x is %v, want %v", bits, got, want)
		}
	}
	if got := float16([]byte{1, 0x7c}); got == got {
		t.Errorf("NaN is %v", got)
	}
}
