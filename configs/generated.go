package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// generatedColumns is the schema of the generator's files in formats other than
// criteo: label, D1 … Dn, then the fields. Values of a multi-valued field are
// separated by "|". Dense columns get log1p, in which the generator's true logit is
// linear. In LibSVM and LibFFM the label needs no column. In LibFFM the columns have the field
// numbers 0, 1, …; in LibSVM the dense columns have the indices 1 to n, and each
// field has as many of the following ones as it has values.
func generatedColumns(g *Generate, format string) string {
	indexed := format == "libsvm" || format == "libffm"
	var columns []string
	if !indexed {
		columns = append(columns, "{name: label, role: label}")
	}
	next := int64(1)
	indices := func(count int64) string {
		switch format {
		case "libsvm":
			first := next
			next += count
			return fmt.Sprintf(", range: [%d, %d]", first, next-1)
		case "libffm":
			return fmt.Sprintf(", field: %d", len(columns))
		}
		return ""
	}
	for i := range min(g.DenseColumns, maxRepeat) {
		columns = append(columns, fmt.Sprintf("{name: D%d, role: dense, transform: [log1p]%s}", i+1, indices(1)))
	}
	fields := int64(0)
	for _, f := range g.Fields {
		fields += int64(max(1, min(f.Repeat, maxRepeat)))
	}
	for _, f := range g.Fields {
		// All ranges together end before 2^63.
		values := max(1, min(f.Cardinality, (math.MaxInt64-maxRepeat)/max(1, fields)))
		for i := range max(1, min(f.Repeat, maxRepeat)) {
			name := f.Name
			if f.Repeat > 1 {
				name += strconv.Itoa(i + 1)
			}
			if name == "" {
				continue // reported as missing
			}
			separator := ""
			if f.MaxValues > 1 && !indexed {
				separator = `, separator: "|"`
			}
			columns = append(columns, fmt.Sprintf("{name: %s, role: sparse%s%s}", yamltree.Text(name), separator, indices(values)))
		}
	}
	return "[" + strings.Join(columns, ", ") + "]"
}

// maxRepeat bounds the number of columns that a faulty generate section can make.
const maxRepeat = 10000
