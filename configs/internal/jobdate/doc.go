// Package jobdate knows the dates of jobs: their time zones, and the templates that stand for a
// date or an environment variable in a path.
//
// A job's date is a day or an hour in the job's time zone. The same date must always give the same
// file names, so a date is what clocks show, not a moment (clock.go): the day before is that day
// even if clocks are put forward at midnight. zone.go determines the system's time zone.
//
// Templates are {{date}}, with an offset and a layout, and ${NAME}; template.go lists them. Expand
// replaces them, and reports every fault with its offset. A Text keeps its dates unexpanded, so
// that it gives the same path at any date.
package jobdate
