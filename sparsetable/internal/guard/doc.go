// Package guard guards the methods of a table: Calls counts the calls in progress, so that the
// table is closed only after them, and a Lock can be waited for with a context.
package guard
