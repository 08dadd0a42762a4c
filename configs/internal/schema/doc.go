// Package schema reads, completes, prints and documents files of which a table describes every key.
// It knows nothing of what the keys are for: that is in the table, in the struct that a file is
// read into, and in what package configs checks.
//
// A Key has the meaning of a key, its default, its range or words, and the conditions under which
// it has an effect. Its type and its place come from the field of the struct; each field has a key,
// or NewTable panics. All else follows:
//
//	Decoder.Decode    nodes of package yamltree into the struct; unknown keys, duplicates, wrong types, values out of range
//	Decoder.Complete  defaults of what was not given; keys that are missing, or given although they have no effect
//	Table.Show        a struct as a file in which every default is filled in and marked
//	Table.Commented   a struct as a file to begin with, explained
//	Table.Document    the table in Markdown
//	Table.Values      a struct as texts by path
//
// A path such as data.columns[2].role names a key of the file. In the table it is a pattern,
// data.columns[].role.
//
// # Faults
//
// Each step continues after a fault, so that the user sees all of them, but one mistake should give
// only one message. The decoder therefore remembers bad paths, and later checks ask whether their
// inputs are Sound. A replacement that a message suggests (meant.go) is guaranteed to be accepted.
// The place where a path was given determines where its faults are shown, and whether they count as
// faults of the file or of an override. A key that an override has left without effect is dropped,
// with a note.
package schema
