package catalog

import "testing"

// FuzzDecodeFormat checks that a format that can be decoded is encoded in the same way again.
func FuzzDecodeFormat(f *testing.F) {
	good, err := testFormat.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"value_dim":-1,"state_dim":9e99}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		have, err := decodeFormat(b)
		if err != nil {
			return
		}
		again, err := have.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeFormat(again); err != nil || back != have {
			t.Errorf("%+v comes back as %+v, %v", have, back, err)
		}
		if err := testFormat.check("dir", have); err == nil && have.validate() == nil && have.Version != formatVersion {
			t.Errorf("%+v was accepted", have)
		}
	})
}
