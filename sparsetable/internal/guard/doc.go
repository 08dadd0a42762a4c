// Package guard guards the methods of a table: a Door counts the calls that are under way,
// so that the table is closed only after them, and a Lock is one whose wait a context ends.
package guard
