package sasl

import (
	"bufio"
	"bytes"
	"io"
	"testing"
)

func TestLayer(t *testing.T) {
	for _, level := range []Level{Signed, Encrypted} {
		d := &digest{Login: Login{User: "u", Password: "p"}, realm: "0", nonce: "n", cnonce: "c", level: level, cipher: "rc4"}
		_, out, err := d.layers()
		if err != nil {
			t.Fatal(err)
		}
		var wire []byte
		for _, text := range []string{"first", "", "second"} {
			wire = append(wire, out.seal([]byte(text))...)
		}
		open := func(wire []byte) (string, error) {
			_, in, err := d.layers()
			if err != nil {
				t.Fatal(err)
			}
			in.mac = out.mac // the other direction's keys
			if in.rc4 != nil {
				_, again, _ := d.layers()
				in.rc4 = again.rc4
			}
			got, err := io.ReadAll(&reader{r: bufio.NewReader(bytes.NewReader(wire)), layer: in})
			return string(got), err
		}
		if got, err := open(wire); err != nil || got != "firstsecond" {
			t.Errorf("%s: %q, %v", level, got, err)
		}
		for i := range wire {
			changed := bytes.Clone(wire)
			changed[i] ^= 1
			if got, err := open(changed); err == nil && got == "firstsecond" {
				t.Errorf("%s: byte %d was changed unnoticed: %q", level, i, got)
			}
		}
	}
}
