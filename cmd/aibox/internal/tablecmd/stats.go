package tablecmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/humanize"
	"aibox/internal/jobview"
	"aibox/sparsetable"
)

func statscommand() *cli.Command {
	return &cli.Command{
		Name:      "stats",
		Usage:     "show a table's size, bucket occupancy and counters",
		ArgsUsage: "TABLE",
		Description: `Reads the index of a table on SSD, but not its rows. The counters cover the table's
lifetime up to the snapshot. The filters' false positive rate is also measured with
random keys.

Examples:

  aibox table stats model
  aibox table stats --json /mnt/ssd0/table --dir /mnt/ssd1/table`,
		Flags:  foundTableFlags(cmdline.JSONFlag(), snapshotFlag()),
		Action: tableStats,
	}
}

// StatsReport is what stats prints as JSON.
type StatsReport struct {
	Dir       string               `json:"dir"`
	Model     string               `json:"model_dir,omitempty"`
	Kind      string               `json:"kind"`
	Layout    sparsetable.Layout   `json:"row_layout"`
	Rows      int64                `json:"rows"`
	Memory    int64                `json:"memory_bytes"`
	Snapshots []snapshotReport     `json:"snapshots"`
	SSD       *sparsetable.Details `json:"ssd,omitempty"`
}

type snapshotReport struct {
	ID    uint64 `json:"id"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"` // that belong to it alone
}

func tableStats(c *cli.Context) error {
	found, err := onlyTable(c)
	if err != nil {
		return err
	}
	defer found.close()
	t, err := found.open(c.Context)
	if err != nil {
		return err
	}
	defer closeTable(cmdline.NewLogger(c), t)
	st := t.Stats()
	r := StatsReport{Dir: found.dir(), Kind: found.options.Kind, Layout: t.Layout(), Rows: st.Rows, Memory: st.MemoryBytes}
	if found.model != nil {
		r.Model = found.model.Model.Dir
	}
	infos, err := t.Snapshots()
	if err != nil {
		return err
	}
	for _, s := range infos {
		r.Snapshots = append(r.Snapshots, snapshotReport{s.ID, s.Rows, s.Bytes})
	}
	if r.Kind == sparsetable.KindSSD {
		if r.SSD, err = sparsetable.DetailsOf(c.Context, t); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, r)
	}
	return printTable(c.App.Writer, found, &r)
}

func printTable(w io.Writer, found *foundTable, r *StatsReport) error {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	found.rows(row)
	row("rows", "%d of %v: %d bytes", r.Rows, r.Layout, r.Layout.Bytes())
	if r.SSD == nil {
		row("memory", "%s", humanize.Bytes(r.Memory))
	}
	for _, s := range r.Snapshots {
		row("snapshot", "%d with %d rows, %s of its own", s.ID, s.Rows, humanize.Bytes(s.Bytes))
	}
	if r.SSD != nil {
		detailRows(row, r.SSD)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.SSD != nil {
		fmt.Fprintf(&b, "\nrows per bucket; slots are split at a mean of %d rows\n", r.SSD.TargetRows)
		histogram(&b, r.SSD)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// detailRows prints the details of a table on SSD. Unless figures are extreme, the
// lines fit a terminal of 80 columns.
func detailRows(row func(name, format string, args ...any), d *sparsetable.Details) {
	s, life := &d.Stats, &d.Lifetime
	row("slots", "%d, %d without a bucket", s.Slots, d.Empty)
	row("on disk", "%s", spaceInUse(s))
	row("", "%s in files that only snapshots need", humanize.Bytes(s.DiskBytes-s.DiskNeededBytes))
	row("", "%s in use are headers and padding; %.2f bytes per byte of row", humanize.Bytes(s.DiskPaddingBytes), s.RowSpaceAmplification)
	for _, dir := range d.Directories {
		row("directory", "%s", dir.Dir)
		limit := ""
		if dir.BudgetBytes > 0 {
			limit = " of " + humanize.Bytes(dir.BudgetBytes)
		}
		row("", "%s%s in %s, %s held by snapshots", humanize.Bytes(dir.DiskBytes), limit, humanize.Count(int64(dir.Files), "file"), humanize.Bytes(dir.HeldBytes))
	}
	row("index", "%s with filters: %s per million rows", humanize.Bytes(s.IndexBytes), humanize.Bytes(int64(d.IndexBytesPerMillionKeys())))
	if d.FilterBytes == 0 {
		row("filters", "none: they would take too much of the budget")
	} else {
		row("filters", "%s, %d bytes per slot; %s of %d random keys pass", humanize.Bytes(s.FilterBytes), d.FilterBytes, humanize.Percent(d.MeasuredFalsePositiveRate()), d.FilterProbes)
	}
	row("memory", "%s of %s", humanize.Bytes(s.MemoryBytes), humanize.Bytes(s.BudgetBytes))
	for parts := jobview.MemoryParts(s); len(parts) > 0; {
		n := min(len(parts), 4)
		row("", "%s", strings.Join(parts[:n], ", "))
		parts = parts[n:]
	}
	if life.Pulls == 0 {
		row("life", "no row was pulled up to this snapshot")
	} else {
		row("pulls", "%d of %d keys: %s in memory, %d rows created", life.Pulls, life.Lookups, humanize.Percent(life.HitRatio()), life.Created)
		row("hits", "%s in flight, %s idle", humanize.PercentOf(life.HitsInFlight, life.Lookups), humanize.PercentOf(life.HitsIdle, life.Lookups))
		row("absent keys", "%d rejected by filters, %d read unnecessarily: %s false positives", life.FilterNegatives, life.FalsePositives, humanize.Percent(life.FalsePositiveRate()))
		row("reads", "%d buckets in %d device reads of %s", life.BucketReads, life.DeviceReads, humanize.Bytes(life.ReadBytes))
		row("", "per pull: %s; %d rows prefetched, %d evicted", jobview.PullReads(life), life.Prefetched, life.Evictions)
	}
	row("flushes", "%d rows in %d buckets, %s read for them", life.FlushedRows, life.FlushedSlots, humanize.Bytes(life.RewriteReadBytes))
	row("writes", "%s for %d updates of rows: write amplification %.2f", humanize.Bytes(life.WrittenBytes), life.UpdatedRows, life.WriteAmplification)
	for _, part := range jobview.WrittenParts(life) {
		row("", "%s", part)
	}
	row("snapshots", "%d before the newest; %d rows copied before they changed or left", life.Snapshots, life.SavedEarly)
}

// histogramWidth is the width of the longest bar, in columns.
const histogramWidth = 40

func histogram(w io.Writer, d *sparsetable.Details) {
	most := int64(1)
	for _, b := range d.Occupancy {
		most = max(most, b.Slots)
	}
	for _, b := range d.Occupancy {
		bar := strings.Repeat("#", int((b.Slots*histogramWidth+most-1)/most))
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%5d-%-4d %10d  %s", b.MinRows, b.MaxRows, b.Slots, bar), " "))
	}
}

// spaceInUse says how much of a table's space on disk is in use. Files that only snapshots
// need do not count.
func spaceInUse(s *sparsetable.Stats) string {
	return fmt.Sprintf("%s for %s in use: space amplification %.2f", humanize.Bytes(s.DiskNeededBytes), humanize.Bytes(s.DiskLiveBytes), s.SpaceAmplification)
}
