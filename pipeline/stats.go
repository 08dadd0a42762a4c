package pipeline

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// StageStats are the measurements of one stage since Run began. Busy, Starved and Blocked add up to
// Elapsed.
type StageStats struct {
	Name    string        `json:"name"`
	State   State         `json:"state"`
	Items   int64         `json:"items"`      // finished; source: given to emit
	Elapsed time.Duration `json:"elapsed_ns"` // until now, or until the stage ended
	Busy    time.Duration `json:"busy_ns"`
	Starved time.Duration `json:"starved_ns"`
	Blocked time.Duration `json:"blocked_ns"`

	// Busy time per item.
	ItemMean   time.Duration `json:"item_mean_ns"`
	ItemStddev time.Duration `json:"item_stddev_ns"` // of the population
	ItemMin    time.Duration `json:"item_min_ns"`
	ItemMax    time.Duration `json:"item_max_ns"`

	// The queue in front of the stage; all zero for the source.
	QueueLen  int     `json:"queue_len"`
	QueueCap  int     `json:"queue_cap"`
	QueueMean float64 `json:"queue_mean"` // time-weighted average length
}

// Stats returns the measurements of every stage, in the order of the line.
func (p *Pipeline) Stats() []StageStats {
	p.mu.Lock()
	stages := p.mu.stages
	p.mu.Unlock()
	out := make([]StageStats, len(stages))
	now := time.Now()
	for i, s := range stages {
		out[i].Name = s.name
		until := s.clock.read(now, &out[i])
		if s.meter != nil {
			s.meter.read(until, &out[i])
		}
	}
	return out
}

// Limiting names the stage that bounds the job. The stages overlap, so the line is as fast as the
// stage with the most work. Limiting returns "" when no stage has worked.
func Limiting(stats []StageStats) string {
	name, most := "", time.Duration(0)
	for _, s := range stats {
		if s.Busy > most {
			name, most = s.Name, s.Busy
		}
	}
	return name
}

// Table formats stats like the paper's Table 1: for every stage the average time that it
// works on one item, and the share of that time in the sum over the stages. Further columns
// show how the stage spent its time and how full its input queue was. The result is plain
// text, one line per stage, in aligned columns.
func Table(stats []StageStats) string {
	var sum time.Duration
	for _, s := range stats {
		sum += s.ItemMean
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\titems\ttime/item\tstddev\tshare\tbusy\tstarved\tblocked\tqueue\t")
	for _, s := range stats {
		queue := "-"
		if s.QueueCap > 0 {
			queue = fmt.Sprintf("%.1f/%d", s.QueueMean, s.QueueCap)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, s.Items,
			round(s.ItemMean), round(s.ItemStddev), percent(s.ItemMean, sum),
			percent(s.Busy, s.Elapsed), percent(s.Starved, s.Elapsed), percent(s.Blocked, s.Elapsed), queue)
	}
	w.Flush() //nolint:errcheck // a strings.Builder takes everything
	return b.String()
}

func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// round keeps about four significant digits.
func round(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 10000*unit {
			return d.Round(unit)
		}
	}
}
