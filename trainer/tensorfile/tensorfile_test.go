package tensorfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

func someTensors(seed uint64) []Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []Tensor
	for _, shape := range [][]int{{3, 5}, {7}, {1, 1}, {0, 4}, {}} {
		t := Tensor{Name: string(rune('a' + len(out))), Shape: shape}
		n := tensorHeader{Shape: shape}.elements()
		for range n {
			t.Data = append(t.Data, rng.Float32())
		}
		out = append(out, t)
	}
	return out
}

func encode(t *testing.T, tensors []Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDenseRoundTrip(t *testing.T) {
	want := someTensors(1)
	got, err := Read(bytes.NewReader(encode(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, wrote %v", got, want)
	}
}

func TestDenseDamage(t *testing.T) {
	whole := encode(t, someTensors(2))
	check := func(what string, data []byte) {
		t.Helper()
		_, err := Read(bytes.NewReader(data))
		var c *FormatError
		if !errors.As(err, &c) {
			t.Errorf("%s: error %v, want a FormatError", what, err)
		}
	}
	for i := range whole {
		check("cut short", whole[:i])
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			check("bit flipped", flipped)
		}
	}
	check("bytes behind", append(bytes.Clone(whole), 0))
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, someTensors(3)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, tensors); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&again)
		if err != nil || len(back) != len(tensors) {
			t.Fatalf("what was read does not survive another round: %v", err)
		}
	})
}
