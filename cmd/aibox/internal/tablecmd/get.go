package tablecmd

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/jobview"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/decay"
)

func getcommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show rows of a table",
		ArgsUsage: "TABLE KEY|FIELD=VALUE...",
		Description: `A key is a number, in decimal, or in hexadecimal with 0x. FIELD=VALUE stands for the key
of this value of the field, as the model's job, or the job that --job names, computes it
from training data. The model uses the values of a row only if its count is at least
sparse_table.admission.min_occurrences; otherwise they count as 0, like those of a key
without a row.

Examples:

  aibox table get model user=4711 'city=São Paulo'
  aibox table get model 0xf543221dd275f9d3
  aibox table get /mnt/ssd0/table user=4711 --job job.yaml --json`,
		Flags:  foundTableFlags(&cli.StringFlag{Name: "job", Usage: "the job `FILE` that defines the fields"}, cmdline.JSONFlag(), snapshotFlag()),
		Action: tableGet,
	}
}

// RowReport is a row as get prints it.
type RowReport struct {
	Name     string  `json:"name"` // as asked for
	Key      uint64  `json:"key,string"`
	Found    bool    `json:"found"`
	Values   []any   `json:"values,omitempty"`
	State    []any   `json:"state,omitempty"`
	Show     float32 `json:"show"`
	Click    float32 `json:"click"`
	LastSeen uint32  `json:"last_seen"`
	Count    uint32  `json:"count"`
}

func tableGet(c *cli.Context) error {
	path, names, err := tableArgument(c)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return cliargs.Errorf("%s: name keys, as numbers or as FIELD=VALUE; see `%[1]s --help`", cliargs.CommandPath(c))
	}
	found, err := findTable(c, path)
	if err != nil {
		return err
	}
	defer found.close()
	keys, err := parseKeys(c, found, names)
	if err != nil {
		return err
	}
	t, err := found.open(c.Context)
	if err != nil {
		return err
	}
	defer closeTable(cmdline.NewLogger(c), t)
	settled, err := found.settled(t)
	if err != nil {
		return err
	}
	var rows []RowReport
	for i, key := range keys { // one by one, because the keys of a Pull must differ
		r, err := getRow(c, settled, names[i], key)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, rows)
	}
	return printRows(c.App.Writer, found, rows)
}

// parseKeys returns the keys that the arguments stand for.
func parseKeys(c *cli.Context, found *foundTable, names []string) ([]uint64, error) {
	var schema *reader.Schema
	var keys []uint64
	for _, name := range names {
		field, value, isField := strings.Cut(name, "=")
		if !isField {
			key, err := strconv.ParseUint(name, 0, 64)
			if err != nil {
				return nil, cliargs.Errorf("%s: %q is not a key: want a number from 0 to 2^64-1, or FIELD=VALUE", cliargs.CommandPath(c), name)
			}
			keys = append(keys, key)
			continue
		}
		if schema == nil {
			var err error
			if schema, err = found.schemaOf(c); err != nil {
				return nil, err
			}
		}
		key, err := schema.KeyOf(field, value)
		if err != nil {
			hint := ""
			if !slices.Contains(schema.Fields(), field) {
				hint = cliargs.DidYouMean("", field, schema.Fields())
			}
			return nil, cliargs.Errorf("%s: %s: %v.%s", cliargs.CommandPath(c), name, err, hint)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func getRow(c *cli.Context, t sparsetable.Table, name string, key uint64) (RowReport, error) {
	r := RowReport{Name: name, Key: key}
	ws, err := t.Pull(c.Context, []uint64{key}, sparsetable.PullLookup)
	if err != nil {
		return r, err
	}
	defer ws.Release()
	if !ws.Found(0) {
		return r, nil
	}
	l, row := t.Layout(), ws.Row(0)
	if d, ok := t.(*decay.Table); ok {
		stored := row
		row = make([]float32, l.Words())
		d.Settle(row, stored)
	}
	st := l.Stats(row)
	r.Found = true
	values := make([]float32, l.ValueDim)
	l.LoadValues(values, row)
	r.Values, r.State = floats(values), floats(l.State(row))
	r.Show, r.Click, r.LastSeen, r.Count = st.Show, st.Click, st.LastSeen, st.Count
	return r, nil
}

// floats prepares values for JSON, in which NaN and infinities must be text.
func floats(values []float32) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			out[i] = fmt.Sprint(v)
		}
	}
	return out
}

func printRows(w io.Writer, found *foundTable, rows []RowReport) error {
	var b bytes.Buffer
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(&b)
		}
		key := fmt.Sprintf("key %d (%#016x)", r.Key, r.Key)
		if strings.Contains(r.Name, "=") {
			key = r.Name + ", " + key
		}
		if !r.Found {
			fmt.Fprintf(&b, "%s: no row\n", key)
			continue
		}
		seen := fmt.Sprintf("day %d", r.LastSeen)
		if found.model != nil {
			seen = jobview.DayText(r.LastSeen, found.model.Model.DayFromDate)
		}
		fmt.Fprintf(&b, "%s\n", key)
		fmt.Fprintf(&b, "  show %g  click %g  last seen %s  count %d\n", r.Show, r.Click, seen, r.Count)
		printFloats(&b, "values", r.Values)
		printFloats(&b, "state", r.State)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// printFloats prints values in lines of less than 80 columns.
func printFloats(b *bytes.Buffer, name string, values []any) {
	if len(values) == 0 {
		return
	}
	const perLine = 5
	for i, v := range values {
		switch {
		case i == 0:
			fmt.Fprintf(b, "  %-6s", name)
		case i%perLine == 0:
			fmt.Fprintf(b, "\n  %6s", "")
		}
		fmt.Fprintf(b, " %13v", v)
	}
	fmt.Fprintln(b)
}
