// Package yamltree reads YAML as a tree of nodes that know where they were written, puts the overrides of a
// command line into it, and writes an override into the text itself.
//
//	text ──Parse──> Node ──Set──> Node          "path=value" of the command line, checked like the rest
//	text, Node ──Edit──> text                   one value replaced or added, all other lines as they were
//
// Anchors, aliases and merge keys are resolved. The interpretation of a scalar is left to the
// caller, who knows its key; scalar.go says how texts and numbers are written. A fault has a
// position: a line and a column of the file, or the override. Messages are addressed to authors of
// job files, but nothing here knows the keys of such a file.
//
// The parsing library takes quadratic time in the nesting depth: check the Nesting of untrusted
// files first.
package yamltree
