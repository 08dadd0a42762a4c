package configs

import (
	"fmt"
	"strings"
	"time"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
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
	fault := fmt.Errorf("%s is not an interval: write auto, none, a duration such as 10m, or a number such as \"1000000 examples\" or \"50 passes\"", nearest.Quote(text))
	if words := strings.Fields(text); len(words) == 2 {
		n, ok := count(words[0])
		if !ok {
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

// count reads how many of something there are, written as integers of job files are: 1000000,
// 1_000_000 or 1e6.
func count(text string) (n int64, ok bool) {
	x, err := yamltree.ParseFloat(text)
	n = int64(x)
	return n, err == nil && n >= 1 && float64(n) == x && x <= 1e18
}

// Interval is the parsed value of Every, which was checked when the job was loaded.
func (s *Snapshots) Interval() SnapshotInterval {
	i, _ := ParseSnapshotInterval(s.Every)
	return i
}

// RemoteInterval says which snapshots are uploaded. One field is set.
type RemoteInterval struct {
	Auto      bool          // as is best for recovery.mean_time_between_failures
	Time      time.Duration // since the upload before
	Snapshots int64         // since the upload before, the one that is uploaded included
}

// ParseRemoteInterval reads a value of snapshots.remote_every.
func ParseRemoteInterval(text string) (RemoteInterval, error) {
	if text = strings.TrimSpace(text); text == "auto" {
		return RemoteInterval{Auto: true}, nil
	}
	fault := fmt.Errorf("%s is not an interval: write auto, a duration such as 1h, or a number such as \"1 snapshot\" or \"10 snapshots\"", nearest.Quote(text))
	if words := strings.Fields(text); len(words) == 2 {
		n, ok := count(words[0])
		if !ok || words[1] != "snapshot" && words[1] != "snapshots" {
			return RemoteInterval{}, fault
		}
		return RemoteInterval{Snapshots: n}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return RemoteInterval{}, fault
	}
	return RemoteInterval{Time: d}, nil
}

// RemoteInterval is the parsed value of RemoteEvery, which was checked when the job was
// loaded.
func (s *Snapshots) RemoteInterval() RemoteInterval {
	i, _ := ParseRemoteInterval(s.RemoteEvery)
	return i
}

// FailureTime is the parsed value of MeanTimeBetweenFailures, which was checked when the job
// was loaded.
func (r *Recovery) FailureTime() time.Duration {
	d, _ := time.ParseDuration(r.MeanTimeBetweenFailures)
	return d
}

func (l *loader) checkSnapshots() {
	j := l.job
	_, every := ParseSnapshotInterval(j.Snapshots.Every)
	_, remote := ParseRemoteInterval(j.Snapshots.RemoteEvery)
	var failures error
	if d, err := time.ParseDuration(j.Recovery.MeanTimeBetweenFailures); err != nil || d <= 0 {
		failures = fmt.Errorf("%s is not a duration, such as 28h or 2000h", nearest.Quote(j.Recovery.MeanTimeBetweenFailures))
	}
	for _, c := range []struct {
		path string
		err  error
	}{{"snapshots.every", every}, {"snapshots.remote_every", remote}, {"recovery.mean_time_between_failures", failures}} {
		if c.err != nil && l.Sound(c.path) {
			l.FaultAt(c.path, "%s", c.err)
		}
	}
}
