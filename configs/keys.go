package configs

import (
	"reflect"

	"aibox/configs/internal/schema"
)

// Types of package schema that are part of the interface of this one.
type (
	// Key describes one key of the job file.
	Key = schema.Key
	// Bytes is a size in bytes. In a job file it may have a unit.
	Bytes = schema.Bytes
	// NumberOrWord is a number, or one of a few words that take its place, such as auto.
	NumberOrWord = schema.NumberOrWord
)

// ParseBytes reads a size such as 8GiB, 512MiB, 64k or 4096.
func ParseBytes(text string) (Bytes, error) { return schema.ParseBytes(text) }

var table = schema.NewTable(reflect.TypeFor[Job](), topKeys, dataKeys, columnKeys, modelKeys, optimizerKeys, linearKeys(), trainingKeys, tableKeys, engineKeys, runKeys, generateKeys)

// Keys returns the description of every key of the job file, in the order of
// the structs in job.go. The caller must not change them.
func Keys() []*Key { return table.Keys }

// jobOf is the job that a default or a condition looks at.
func jobOf(s schema.Scope) *Job { return s.Root.(*Job) }

// columnOf is the column whose key it is.
func columnOf(s schema.Scope) *Column { return s.Parent.Addr().Interface().(*Column) }
