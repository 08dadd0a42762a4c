// Package jobdate knows the dates of jobs: their time zones, and the templates that stand for a
// date or an environment variable in a path.
//
// A job's date is a day or an hour, in the job's time zone. What is of the same date is found under
// the same names, whenever it is done, so a date is not a moment but what clocks show (clock.go):
// the day before is that day also where clocks are put forward at midnight. zone.go finds out which
// time zone the system has.
//
// Templates are {{date}}, with an offset and a layout, and ${NAME}; template.go lists them. Expand
// replaces them, and reports every fault with its offset. A Text is one whose dates are left open:
// it says what the same path is at another date.
package jobdate
