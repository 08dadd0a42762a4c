// Package generations describes, for people, the generations of a model directory (List) or of a
// remote one (ListRemote, and VerifyRemote, which reads all of it): models, unfinished runs,
// snapshots, and rows that were saved by priority. It changes nothing.
package generations
