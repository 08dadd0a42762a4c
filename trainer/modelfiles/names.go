package modelfiles

import "strings"

// Names of the files of a generation, and of the directories in it.
const (
	Job        = "job.yaml"
	Statistics = "statistics.json"
	Table      = "table"
	Reports    = "reports"
	Quarantine = "quarantine.jsonl" // a report, whose rows may contain personal data
)

// Names in a list of files.
const (
	// TableFiles begins the names of the table's files.
	TableFiles = Table + "/"
	// Outside begins the names of reports outside the model directory.
	Outside = "outside"
	// Index is the index of a table on SSD.
	Index = Table + "/index"
	// pages begins the names of files with pages of indexes.
	pages = Table + "/pages-"
)

// IsReport reports whether a file of a generation, given by its name in a list of files, is a
// report, which a model can do without.
func IsReport(name string) bool { return strings.HasPrefix(name, Reports+"/") }

// IsIndex reports whether a file is an index of a table, or a part of one.
func IsIndex(name string) bool {
	return name == Index || strings.HasPrefix(name, Index+"-") || strings.HasPrefix(name, pages)
}

// FlatName returns the name, within a generation, of a file of a list that belongs to no directory
// there.
func FlatName(name string) string { return strings.ReplaceAll(name, "/", "-") }
