package reader

import (
	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
	"aibox/reader/rowschema"
)

// What rows mean; see package rowschema.
type (
	Schema           = rowschema.Schema
	Column           = rowschema.Column
	LabelRule        = rowschema.LabelRule
	Role             = rowschema.Role
	Format           = rowschema.Format
	Stored           = rowschema.Stored
	Statistics       = rowschema.Statistics
	ColumnStatistics = rowschema.ColumnStatistics
)

// The roles of columns.
const (
	RoleIgnore = rowschema.RoleIgnore
	RoleLabel  = rowschema.RoleLabel
	RoleDense  = rowschema.RoleDense
	RoleSparse = rowschema.RoleSparse
	RoleWeight = rowschema.RoleWeight
)

// The formats of files.
const (
	FormatCriteo  = rowschema.FormatCriteo
	FormatCSV     = rowschema.FormatCSV
	FormatTSV     = rowschema.FormatTSV
	FormatLibSVM  = rowschema.FormatLibSVM
	FormatLibFFM  = rowschema.FormatLibFFM
	FormatParquet = rowschema.FormatParquet
)

// What can be wrong with the input and the options; see package faults.
type (
	BadRow        = faults.BadRow
	ReasonCount   = faults.ReasonCount
	BadRowsError  = faults.BadRowsError
	Loss          = faults.Loss
	LostDataError = faults.LostDataError
	OptionsError  = faults.OptionsError
)

// ReasonOutput is the reason of a bad row that has a cell that the output cannot hold.
const ReasonOutput = faults.ReasonOutput

// Key returns the key of one sparse feature value, given the embedding space and the value's
// raw bytes, as they stand in the input without quoting. The same (space, value) has the same
// key in every format, on every machine and for ever.
func Key(space string, value []byte) uint64 { return hashes.Key(space, value) }
