package tablecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/internal/terminal"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

func compactcommand() *cli.Command {
	return &cli.Command{
		Name:      "compact",
		Usage:     "free the space of outdated data in a table on SSD",
		ArgsUsage: "TABLE",
		Description: `Writes rows that are only in delta files to their buckets, copies live data out of files
that also hold outdated data, takes a snapshot of the result, which replaces the previous
one, and deletes those files. Neither the rows nor the model's digest change. Name a
model's table by the model directory or the job file, because the new snapshot must be
recorded in the model. The copies need additional space until the files are deleted. If
the command is interrupted, the table does not change. A table whose rows are only in
delta files may grow a little, because buckets are aligned to disk blocks.

Examples:

  aibox table compact model
  aibox table compact /mnt/ssd0/table --min-gain 0.3 --drop-older`,
		Flags: foundTableFlags(
			&cli.Float64Flag{Name: "min-gain", Value: 0.02, Usage: "leave a file alone if less than this `SHARE` of it is outdated"},
			&cli.BoolFlag{Name: "drop-older", Usage: "also drop all snapshots but the newest; they prevent old files from being deleted"},
			cmdline.JSONFlag(),
		),
		Action: tableCompact,
	}
}

// compactReport is what compact prints as JSON.
type compactReport struct {
	Dir              string                      `json:"dir"`
	Before           sparsetable.Stats           `json:"before"`
	After            sparsetable.Stats           `json:"after"`
	FlushedRows      int64                       `json:"flushed_rows"` // from delta files to buckets
	Done             sparsetable.CompactProgress `json:"done"`
	Snapshot         uint64                      `json:"snapshot"` // the newest
	DroppedSnapshots []uint64                    `json:"dropped_snapshots"`

	older int // snapshots that stay beside the newest
}

func tableCompact(c *cli.Context) error {
	if g := c.Float64("min-gain"); !(g > 0 && g <= 1) {
		return cliargs.Errorf("%s: --min-gain %g: want a share of more than 0, at most 1", cliargs.CommandPath(c), g)
	}
	found, err := onlyTable(c)
	if err != nil {
		return err
	}
	defer found.close()
	if found.options.Kind != sparsetable.KindSSD {
		return cliargs.Errorf("%s: the table in %s is of kind %s, whose snapshots hold nothing but rows: there is nothing to compact", cliargs.CommandPath(c), found.dir(), found.options.Kind)
	}
	var edit *modeldir.Edit
	if found.model == nil {
		if err := refuseModelDirs(c, append([]string{found.dir()}, found.options.SSD.Dirs...)...); err != nil {
			return err
		}
	} else {
		if edit, err = found.model.Model.Edit(); err != nil {
			return err
		}
		defer cmdline.CloseWith(cmdline.NewLogger(c), "the lock of the model directory", edit)
	}
	r, err := compactTable(c, found, edit)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, r)
	}
	return printCompaction(c, r)
}

func compactTable(c *cli.Context, found *foundTable, edit *modeldir.Edit) (r *compactReport, err error) {
	t, err := sparsetable.Open(c.Context, found.options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	infos, err := t.Snapshots()
	if err != nil {
		return nil, err
	}
	if edit == nil {
		if err := refuseModelSnapshots(c, found.dir(), infos); err != nil {
			return nil, err
		}
	}
	opened := infos[len(infos)-1]
	for _, s := range infos {
		if s.ID == found.options.SnapshotID {
			opened = s
		}
	}
	r = &compactReport{Dir: found.dir(), Before: t.Stats(), Snapshot: opened.ID, DroppedSnapshots: []uint64{}}
	progress, d := terminal.StartTask(cmdline.ConsoleOf(c), cmdline.NewLogger(c), "compacting", "files", 0)
	defer d.Stop()
	if f, ok := t.(sparsetable.Flusher); ok {
		r.FlushedRows = t.Stats().DirtyRows // the snapshot has them in delta files
		if err := f.Flush(c.Context); err != nil {
			return nil, err
		}
	}
	r.Done, err = sparsetable.Compact(c.Context, t, c.Float64("min-gain"), func(p sparsetable.CompactProgress) {
		progress.SetTotal(int64(p.FilesTotal))
		progress.SetDone(int64(p.Files))
	})
	if err != nil {
		return nil, err
	}
	if r.Done.Files > 0 || r.FlushedRows > 0 {
		if r.Snapshot, err = replaceSnapshot(c.Context, t, opened.Record, edit); err != nil {
			return nil, err
		}
	}
	for _, s := range infos {
		// A model has one snapshot: an interrupted compaction left the others.
		older := s.ID != opened.ID && (edit != nil || c.Bool("drop-older"))
		if older || s.ID == opened.ID && r.Snapshot != opened.ID {
			if err := t.DropSnapshot(s.ID); err != nil {
				return nil, err
			}
			r.DroppedSnapshots = append(r.DroppedSnapshots, s.ID)
		}
	}
	if infos, err = t.Snapshots(); err != nil {
		return nil, err
	}
	r.older = len(infos) - 1
	r.After, err = settled(c.Context, t)
	return r, err
}

// replaceSnapshot takes a snapshot with the record of the one that it replaces, and
// makes it the snapshot that the model names, if edit is not nil.
func replaceSnapshot(ctx context.Context, t sparsetable.Table, record []byte, edit *modeldir.Edit) (id uint64, err error) {
	p, err := t.Snapshot(ctx, record)
	if err != nil {
		return 0, err
	}
	info, err := p.Wait()
	if err != nil {
		return 0, err
	}
	if edit != nil {
		if err := edit.SetTableSnapshot(info.ID); err != nil {
			return 0, err
		}
	}
	return info.ID, nil
}

// settled waits until files that are being deleted are gone, and returns the table's
// figures.
func settled(ctx context.Context, t sparsetable.Table) (sparsetable.Stats, error) {
	for range 1000 { // 10 s at most, because only the figures depend on it
		details, err := sparsetable.DetailsOf(ctx, t)
		if err != nil {
			return sparsetable.Stats{}, err
		}
		dying := int64(0)
		for _, dir := range details.Directories {
			dying += dir.DyingBytes
		}
		if dying == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return t.Stats(), nil
}

func printCompaction(c *cli.Context, r *compactReport) error {
	w := new(bytes.Buffer)
	line := func(name string, s *sparsetable.Stats) {
		fmt.Fprintf(w, "%-7s %s; %s more in snapshots\n", name, spaceInUse(s), humanize.Bytes(s.DiskBytes-s.DiskNeededBytes))
	}
	line("before", &r.Before)
	line("after", &r.After)
	if r.FlushedRows > 0 {
		fmt.Fprintf(w, "%s were written from delta files to buckets\n", humanize.Count(r.FlushedRows, "row"))
	}
	if r.Done.Files == 0 {
		fmt.Fprintf(w, "no file is outdated by %s or more\n", humanize.Percent(c.Float64("min-gain")))
	} else {
		fmt.Fprintf(w, "%s were moved out of %s\n", humanize.Bytes(r.Done.MovedBytes), humanize.Count(int64(r.Done.Files), "file"))
	}
	if r.FlushedRows > 0 || r.Done.Files > 0 {
		fmt.Fprintf(w, "the newest snapshot is %d\n", r.Snapshot)
	}
	if r.older > 0 {
		fmt.Fprintf(w, "%s before the newest may keep old files from being deleted; see --drop-older\n", humanize.Count(int64(r.older), "snapshot"))
	}
	_, err := c.App.Writer.Write(w.Bytes())
	return err
}
