package reader

import (
	"slices"

	"aibox/reader/internal/examples"
)

// PartitionColumns are the names of the columns that the directories of the listed
// files give, in the order of their first use.
func PartitionColumns(o *Options) (names []string) {
	if f := o.Schema.Format; !f.Separated() && f != FormatParquet {
		return nil
	}
	for _, f := range o.Listing.Files {
		for _, p := range examples.PartitionsOf(f.URI) {
			if f.Size > 0 && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}
