package trainer

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"aibox/trainer/internal/testjobs"
)

// TestBitsStayTheSame checks that models have the digests of testdata/digests.txt, whatever the
// processor and the version of aibox. If a change alters the models on purpose, CHANGELOG.md says
// so, and the output of the test goes into the file.
func TestBitsStayTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("trains each model three times")
	}
	const file = "testdata/digests.txt"
	var digests strings.Builder
	for _, kind := range testjobs.Kinds() {
		for _, c := range []struct {
			name string
			set  []string
		}{{"defaults", nil}, {"extras", extras[kind]}, {"bf16", []string{"engine.precision=bf16"}}} {
			fmt.Fprintf(&digests, "%s, %s: %s\n", kind, c.name, train(t, job(t, kind, c.set...)).Digest)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if digests.String() != string(want) {
		t.Errorf("models have other bits; if that is meant, say so in CHANGELOG.md, and let %s have these lines:\n%s", file, digests.String())
	}
}
