package configs

import (
	"bytes"
	"flag"
	"os"
	"testing"

	_ "github.com/cockroachdb/datadriven" // registers -rewrite
)

//go:generate go test -run TestPageIsCurrent . -rewrite

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// TestPageIsCurrent: the section "Keys" of the job file's documentation, which is its last one, is
// that of the table of keys. The text before it is written by hand.
func TestPageIsCurrent(t *testing.T) {
	const path = "../docs/job-file.md"
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, ok := bytes.Cut(have, []byte("\n## Keys\n"))
	if !ok {
		t.Fatalf("%s has no section Keys", path)
	}
	page := bytes.NewBuffer(bytes.Clone(byHand))
	page.WriteString("\n## Keys\n")
	table.Document(page)
	if rewriting() {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Errorf("%s is not what the table of keys says; run go generate ./configs", path)
	}
}
