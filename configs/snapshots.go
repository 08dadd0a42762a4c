package configs

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SnapshotInterval says when the next snapshot is due. At most one field is set; if none
// is, there are no snapshots.
type SnapshotInterval struct {
	Auto     bool          // as often as costs little
	Time     time.Duration // since the snapshot before
	Examples int64         // trained since the snapshot before
	Passes   int64         // trained since the snapshot before
}

// ParseSnapshotInterval reads a value of snapshots.every.
func ParseSnapshotInterval(text string) (SnapshotInterval, error) {
	switch text = strings.TrimSpace(text); text {
	case "auto":
		return SnapshotInterval{Auto: true}, nil
	case "none":
		return SnapshotInterval{}, nil
	}
	fault := fmt.Errorf("%s is not an interval: write auto, none, a duration such as 10m, or a number such as \"1000000 examples\" or \"50 passes\"", quote(text))
	if words := strings.Fields(text); len(words) == 2 {
		x, err := strconv.ParseFloat(cleanNumber(words[0]), 64)
		n := int64(x)
		if err != nil || n < 1 || float64(n) != x || x > 1e18 {
			return SnapshotInterval{}, fault
		}
		switch words[1] {
		case "example", "examples":
			return SnapshotInterval{Examples: n}, nil
		case "pass", "passes":
			return SnapshotInterval{Passes: n}, nil
		}
		return SnapshotInterval{}, fault
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return SnapshotInterval{}, fault
	}
	return SnapshotInterval{Time: d}, nil
}

// Interval is the parsed value of Every, which was checked when the job was loaded.
func (s *Snapshots) Interval() SnapshotInterval {
	i, _ := ParseSnapshotInterval(s.Every)
	return i
}

func (l *loader) checkSnapshots() {
	if !l.sound("snapshots.every") {
		return
	}
	if _, err := ParseSnapshotInterval(l.job.Snapshots.Every); err != nil {
		l.faultAt("snapshots.every", "%s", err)
	}
}
