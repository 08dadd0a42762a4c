package tablecmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/internal/terminal"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

func verifycommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "read a whole table and list every fault",
		ArgsUsage: "TABLE",
		Description: `Reads every bucket of every snapshot. It checks that the checksums match; that each
bucket belongs to its slot, and each key is in its bucket and nowhere else; that the
index has the right row counts and the filters contain all keys; that the count of live
bytes of each file is right; that no file of a snapshot is missing; and that a model's
table has the snapshot that the model names. Each fault is printed on one line with file,
offset and slot. If there are faults, the exit code is 4.

Examples:

  aibox table verify model
  aibox table verify /mnt/ssd0/table --dir /mnt/ssd1/table --json`,
		Flags:  foundTableFlags(cmdline.JSONFlag(), snapshotFlag()),
		Action: tableVerify,
	}
}

// FaultsError says that a table has faults.
type FaultsError struct {
	Dir    string
	Faults int64
	// unnamed says that files are missing that may be in a directory that was not named.
	unnamed bool
	// Harmless says that all rows are present and correct.
	Harmless bool
}

func (e *FaultsError) Error() string {
	text := fmt.Sprintf("%s: the table is damaged: %s", e.Dir, humanize.Count(e.Faults, "fault"))
	if e.unnamed {
		text += "\nFiles are missing. If the table has further directories, name them with --dir."
	}
	if e.Harmless {
		text += "\nAll of its rows are intact. Only copies of rows are damaged, which serve to open the table faster."
	}
	return text
}

func (*FaultsError) ErrorKind() errkind.Kind { return errkind.IO }

func tableVerify(c *cli.Context) error {
	found, err := onlyTable(c)
	if err != nil {
		return err
	}
	defer found.close()
	held, err := found.hold(c.Context)
	if err != nil {
		return err
	}
	defer held.Close()
	o := found.options
	if !c.IsSet("snapshot") {
		o.SnapshotID = 0 // all
	}
	log := cmdline.NewLogger(c)
	progress, d := terminal.StartTask(cmdline.ConsoleOf(c), log, "verifying", "rows", 0)
	defer d.Stop()
	faults := []sparsetable.Fault{}
	report := func(f sparsetable.Fault) {
		if faults = append(faults, f); !c.Bool("json") {
			d.Stop() // what comes now is the result
			fmt.Fprintln(c.App.Writer, f)
		}
	}
	done, err := sparsetable.Verify(c.Context, o, report, func(v sparsetable.Verification) {
		progress.SetTotal(v.TotalRows)
		progress.SetDone(v.Rows)
	})
	if err == nil && found.model != nil && !c.IsSet("snapshot") {
		f, openErr := namedSnapshot(c.Context, found)
		if f != nil {
			report(*f)
			done.Faults++
		} else if done.Faults == 0 { // otherwise the reason why it does not open was reported
			err = openErr
		}
	}
	d.Stop()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = cmdline.PrintJSON(c.App.Writer, struct {
			sparsetable.Verification
			List []sparsetable.Fault `json:"fault_list"`
		}{done, faults})
	} else if done.Faults == 0 {
		what := humanize.Count(done.Rows, "row")
		if done.Kind == sparsetable.KindSSD {
			what += fmt.Sprintf(" in %s (%s)", humanize.Count(done.Buckets, "bucket"), humanize.Bytes(done.ReadBytes))
		}
		_, err = fmt.Fprintf(c.App.Writer, "%s: no faults in %s of %s\n", found.dir(), what, humanize.Count(int64(done.Snapshots), "snapshot"))
	}
	if bytes, uri := found.notArrived(); bytes > 0 {
		log.Warn("some files of the table have not arrived yet: these bytes were verified in the remote directory, not on the disk; verify again when `aibox restore` has ended", "bytes", bytes, "remote", uri)
	}
	if err == nil && done.Faults > 0 {
		missing := slices.ContainsFunc(faults, func(f sparsetable.Fault) bool { return f.Missing })
		return &FaultsError{Dir: found.dir(), Faults: done.Faults, unnamed: missing && found.model == nil}
	}
	return err
}

// namedSnapshot returns what is wrong with the snapshot that the table's model names, or nil. An
// error means that the table could not be opened for another reason.
func namedSnapshot(ctx context.Context, found *foundTable) (*sparsetable.Fault, error) {
	t, err := found.model.Model.OpenTable(ctx, found.options)
	if err == nil {
		return nil, t.Close()
	}
	f := &sparsetable.Fault{File: found.dir(), Offset: -1, Slot: -1}
	var bad *modeldir.CorruptionError
	switch {
	case errors.Is(err, sparsetable.ErrNoSnapshot):
		f.Reason = fmt.Sprintf("the table has no snapshot %d, which the model names in %s", found.options.SnapshotID, filepath.Join(found.model.Model.Dir, "MODEL.json"))
	case errors.As(err, &bad):
		f.Reason = bad.Reason
	default:
		return nil, err
	}
	return f, nil
}
