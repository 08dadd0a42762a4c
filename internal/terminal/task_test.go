package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestTask(t *testing.T) {
	x := &Task{}
	x.Next("exporting", "rows", 0, x.done.Load)
	x.step.Load().since = time.Unix(0, 0)
	x.done.Store(2500)
	f := x.frame(time.Unix(2, 0))
	if have := strings.Join(f.Block(80), "\n"); have != "exporting  2500 rows  1250 rows/s" {
		t.Errorf("block:\n%s", have)
	}
	x.total.Store(10000)
	f = x.frame(time.Unix(2, 0))
	if have := strings.Join(f.Block(80), "\n"); have != "exporting  [#######-----------------------]  25.0%  2500 of 10000 rows\n1250 rows/s  ETA 6s" {
		t.Errorf("block:\n%s", have)
	}
	if line := f.Line(); line != "exporting   25.0%  2500 of 10000 rows  1250 rows/s  ETA 6s" {
		t.Errorf("line %q", line)
	}
	if attrs := f.Attrs(); len(attrs) != 12 || attrs[4] != "rows" || attrs[5] != int64(2500) {
		t.Errorf("attrs %v", attrs)
	}
	x.Next("writing", "rows", 10000, func() int64 { return 100 })
	x.step.Load().since = time.Unix(2, 0)
	if line := x.frame(time.Unix(4, 0)).Line(); line != "writing    1.0%  100 of 10000 rows  50 rows/s  ETA 3m18s" {
		t.Errorf("line of the next step %q", line)
	}
}
