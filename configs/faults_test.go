package configs

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestFaults loads the job files in testdata/faults and compares the faults.
//
//	load [date=…] [env=(A=b)] [set=(a.b=c, …)]
//	base: prepends a good csv job, so that a case needs only what it is about
func TestFaults(t *testing.T) {
	datadriven.Walk(t, "testdata/faults", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			opts := LoadOptions{Date: "2026-11-20", Env: func(name string) (string, bool) {
				value, set := map[string]string{"SET": "value", "EMPTY": "", "BRACES": "{{date}}", "LATIN": "caf\xe9"}[name]
				return value, set
			}}
			text := ""
			switch d.Cmd {
			case "load":
				text = d.Input
			case "set": // one override per line, on the small job
				text = smallJob
				opts.Set = strings.Split(d.Input, "\n")
			case "path": // templates in a path, one per line
				text = smallJob
				var out []string
				for line := range strings.SplitSeq(d.Input, "\n") {
					j, err := Parse("job.yaml", []byte(text+"name: '"+line+"'\n"), opts)
					if err != nil {
						out = append(out, err.Error())
					} else {
						out = append(out, j.Name)
					}
				}
				return strings.Join(out, "\n")
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			for _, a := range d.CmdArgs {
				if a.Key == "date" {
					opts.Date = a.Vals[0]
				}
			}
			_, err := Parse("job.yaml", []byte(text), opts)
			var faults FaultsError
			if err == nil {
				return "ok"
			}
			if !errors.As(err, &faults) {
				t.Fatalf("not a FaultsError: %v", err)
			}
			return err.Error()
		})
	})
}
