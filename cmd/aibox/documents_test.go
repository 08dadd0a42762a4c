package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile("(?m)^#+ (.*)$")
	codePattern    = regexp.MustCompile("(?s)```.*?```")
	sourcePattern  = regexp.MustCompile("`([\\w./-]+\\.go)`")
	noAnchor       = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestDocumentsNameWhatExists checks that links in documents lead to existing files and headings,
// and that the Go files that documents name exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	const root = "../.."
	var documents, sources []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == filepath.Join(root, "bin")):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			documents = append(documents, path)
		case strings.HasSuffix(path, ".go"):
			sources = append(sources, path)
		}
		return nil
	})
	if err != nil || len(documents) < 20 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	for _, document := range documents {
		text := read(t, document)
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := document
			if to != "" {
				target = filepath.Join(filepath.Dir(document), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s: %v", document, m[1], err)
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: the link %s leads to no heading", document, m[1])
			}
		}
		for _, m := range sourcePattern.FindAllStringSubmatch(text, -1) {
			found := false
			for _, source := range sources {
				found = found || strings.HasSuffix(source, "/"+m[1])
			}
			if !found {
				t.Errorf("%s names %s, which does not exist", document, m[1])
			}
		}
	}
}

// anchors returns the names by which links refer to the headings of a document.
func anchors(document string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range headingPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(document, ""), -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}
