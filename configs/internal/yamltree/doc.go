// Package yamltree reads YAML as a tree of nodes that know where they were written, puts the overrides of a
// command line into it, and writes an override into the text itself.
//
//	text ──Parse──> Node ──Set──> Node          "path=value" of the command line, checked like the rest
//	text, Node ──Edit──> text                   one value replaced or added, all other lines as they were
//
// Anchors, aliases and merge keys are resolved. What a scalar means is left to whoever knows the
// key that it is for; scalar.go has how texts and numbers are written. A fault has the place of
// what is wrong: a line and a column of the file, or the override. Messages are meant for whoever
// writes job files, but nothing here knows which keys such a file has.
//
// The library that parses takes quadratic time in the depth of the nesting: of a file of unknown
// origin, ask for its Nesting first.
package yamltree
