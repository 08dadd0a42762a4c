package report

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"aibox/trainer/metrics"
)

// TestPage: docs/reports.md names every key of summary.json, except for those of the table, of
// memory and of devices.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{Summary{}, Reading{}, Epoch{}, Stage{}, metrics.Report{}, Failure{}, Resumption{}, Recovery{}, Arrival{}, Snapshots{}} {
		typ := reflect.TypeOf(of)
		for field := range typ.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key != "" && key != "-" && !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("%v: the page does not have `%s`", typ, key)
			}
		}
	}
}
