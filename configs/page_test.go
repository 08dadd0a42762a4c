package configs

import (
	"bytes"
	"flag"
	"os"
	"testing"

	_ "github.com/cockroachdb/datadriven" // registers -rewrite
)

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

func TestPageIsCurrent(t *testing.T) {
	const path = "../docs/job-file.md"
	if rewriting() {
		if err := os.WriteFile(path, page(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page()) {
		t.Errorf("%s is not what the table of keys says; run go generate ./configs", path)
	}
}
