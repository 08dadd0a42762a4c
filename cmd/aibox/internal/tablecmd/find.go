package tablecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/errkind"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
)

// foundTable is a table that a command line names.
type foundTable struct {
	// options open it; ReadOnly is for the command to set.
	options sparsetable.Options
	// model is the model that the table belongs to; nil if there is none.
	model *modeltable.Table
	// dated is a job with the date for templates in other arguments.
	dated *configs.Job
}

// job says how HDFS is reached: the job file or --set, or else the job of the model.
func (t *foundTable) job() *configs.Job {
	if t.model != nil && t.dated.Data.HDFS == (configs.HDFS{}) {
		return t.model.Job
	}
	return t.dated
}

// dir is the table's own directory, the first of several.
func (t *foundTable) dir() string { return t.options.Dir }

// dirs are the table's directories.
func (t *foundTable) dirs() []string {
	if len(t.options.SSD.Dirs) > 0 {
		return t.options.SSD.Dirs
	}
	return []string{t.options.Dir}
}

// ErrNoTable is wrapped by errors about places without a table.
var ErrNoTable = errkind.New(errkind.IO, "there is no table here")

// tableArgument returns the command's first argument, which names the table, and the
// other arguments.
func tableArgument(c *cli.Context) (string, []string, error) {
	if c.NArg() == 0 {
		return "", nil, cliargs.Errorf("%s: name the table: a model directory, a job file or the table's own directory; see `%[1]s --help`", cliargs.CommandPath(c))
	}
	return c.Args().First(), c.Args().Tail(), nil
}

// onlyTable finds the table that the command's only argument names.
func onlyTable(c *cli.Context) (*foundTable, error) {
	path, err := cliargs.OneArgument(c, "the table: a model directory, a job file or the table's own directory")
	if err != nil {
		return nil, err
	}
	return findTable(c, path)
}

// findTable finds the table that path names. The path is that of a model directory, a
// job file or a directory of a table.
func findTable(c *cli.Context, path string) (*foundTable, error) {
	memory, err := cmdline.BytesFlag(c, "memory")
	if err != nil {
		return nil, err
	}
	dated, err := cmdline.DatedJob(c)
	if err != nil {
		return nil, err
	}
	if path, err = cmdline.Expand(c, dated, "the table", path); err != nil {
		return nil, err
	}
	t, err := lookForTable(c, dated, path)
	if err != nil {
		return nil, err
	}
	if memory > 0 {
		t.options.MemoryBytes = memory
	}
	if id := c.Uint64("snapshot"); id != 0 {
		t.options.SnapshotID = id
	}
	t.options.MustExist = true
	t.options.Logger = cmdline.NewLogger(c)
	return t, nil
}

// lookForTable finds the table that path names. dated has the date of the templates,
// unless path names a job file, which has its own.
func lookForTable(c *cli.Context, dated *configs.Job, path string) (*foundTable, error) {
	modelDir, generation := modeldir.SplitName(path)
	info, err := os.Stat(modelDir)
	if err != nil {
		return nil, fmt.Errorf("the table: %w; name a model directory, a job file or the table's own directory", err)
	}
	if !info.IsDir() {
		if generation != 0 {
			return nil, cliargs.Errorf("%s: %s: only a model directory has generations, but %s is a file", cliargs.CommandPath(c), path, modelDir)
		}
		job, err := cmdline.JobOfFlags(c, path)
		if err != nil {
			return nil, err
		}
		t, err := tableAt(c, job, job.Output.ModelDir, false)
		if err != nil {
			return nil, err
		}
		if err := refuseUnusedSets(c, t); err != nil {
			t.close()
			return nil, err
		}
		return t, nil
	} else if strings.Contains(c.String("to"), "://") { // the output
		if dated, err = cmdline.DatedWithHDFS(c); err != nil {
			return nil, err
		}
	} else if c.String("job") == "" {
		if _, err := cmdline.DatedAlone(c); err != nil {
			return nil, err
		}
	}
	return tableAt(c, dated, path, true)
}

// refuseUnusedSets fails if --set gives a job file's key another value than the model was trained
// with, because a table is opened with its model's settings. Exceptions are the model directory
// itself and the time zone of dates, which do come from the job file.
func refuseUnusedSets(c *cli.Context, t *foundTable) error {
	if t.model == nil {
		return nil
	}
	for _, set := range c.StringSlice("set") {
		key, _, _ := strings.Cut(set, "=")
		if key = strings.TrimSpace(key); key == "output.model_dir" || key == "timezone" {
			continue
		}
		same, err := t.model.TrainedWith(set, c.String("date"))
		if err != nil || !same {
			return cliargs.Errorf("%s: --set %s: the model in %s was trained with another value, and its table is opened with the settings of the model, of which only --memory overrides one", cliargs.CommandPath(c), set, t.model.Model.Name)
		}
	}
	return nil
}

// tableAt finds the table in a directory, which the command line names if named
// is true.
func tableAt(c *cli.Context, dated *configs.Job, path string, named bool) (*foundTable, error) {
	more, err := cmdline.PathFlags(c, dated, "dir")
	if err != nil {
		return nil, err
	}
	t, err := tableOfDirs(c, append([]string{path}, more...))
	if err != nil {
		return nil, err
	}
	if t != nil {
		t.dated = dated
		return t, nil
	}
	_, generation := modeldir.SplitName(path)
	if _, none := modeldir.Generations(path); named && generation == 0 && errors.Is(none, modeldir.ErrNoModel) {
		hint := ""
		if dir := filepath.Join(path, "table"); tableIn(dir) {
			hint = fmt.Sprintf("; there is one in %s", dir)
		}
		return nil, fmt.Errorf("%s: %w: it holds no model (MODEL.json), and neither a table on SSD (catalog) nor one in memory (snapshot-*.rows)%s", path, ErrNoTable, hint)
	}
	if len(more) > 0 {
		return nil, cliargs.Errorf("%s: --dir is for a table that belongs to no model; %s is a model directory, which says where its table is", cliargs.CommandPath(c), path)
	}
	m, err := modeltable.Find(path)
	if err != nil {
		return nil, err
	}
	return &foundTable{options: m.Options, model: m, dated: dated}, nil
}

// tableOfDirs finds the table in dirs, the first of which names it. It returns nil if there is
// none.
func tableOfDirs(c *cli.Context, dirs []string) (*foundTable, error) {
	path := dirs[0]
	t := &foundTable{options: sparsetable.Options{Kind: sparsetable.KindMemory, Dir: path}}
	rows := "" // a file of a table on SSD
	for i, dir := range dirs {
		files, err := sparsetable.FilesIn(dir)
		if errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if i == 0 && len(files.Rows) > 0 {
			rows = files.Rows[0]
		}
		switch {
		case files.Catalog:
			t.options.Kind, t.options.SSD.Dirs = sparsetable.KindSSD, dirs
			return t, nil
		case i == 0 && files.HasTable() && len(dirs) > 1:
			return nil, cliargs.Errorf("%s: --dir: the table in %s is of kind memory, and has only one directory", cliargs.CommandPath(c), dir)
		case i == 0 && files.HasTable():
			return t, nil
		}
	}
	if rows != "" {
		return nil, fmt.Errorf("%s: %w: it has files of a table on SSD, such as %s, but no catalog; one of the table's directories has it, so name all of them with --dir; a table whose catalog is lost cannot be read", path, ErrNoTable, rows)
	}
	return nil, nil
}

// tableIn reports whether a table can be opened by naming dir.
func tableIn(dir string) bool {
	files, err := sparsetable.FilesIn(dir)
	return err == nil && files.HasTable()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
}

// open opens the table for reading.
func (t *foundTable) open(ctx context.Context) (sparsetable.Table, error) {
	held, err := t.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Close() // an open table has a lock of its own
	o := t.options
	o.ReadOnly = true
	return sparsetable.Open(ctx, o)
}

// settled returns a view of the open table with its rows as the model uses them after its last
// step, that is, with weight decay applied. A table without a model, or a snapshot other than the
// model's, is shown as stored.
func (t *foundTable) settled(table sparsetable.Table) (sparsetable.Table, error) {
	if t.model == nil || t.options.SnapshotID != t.model.Model.TableSnapshot {
		return table, nil
	}
	return t.model.Settled(table)
}

// hold prevents others from writing a model's table until the result is closed. It waits for a
// process that compacts the table. Afterwards the table may only be read, because files of it may
// not have arrived.
func (t *foundTable) hold(ctx context.Context) (io.Closer, error) {
	if t.model == nil {
		return io.NopCloser(nil), nil
	}
	if err := t.model.Read(t.options.Logger); err != nil {
		return nil, err
	}
	t.options.SSD.Source = t.model.Options.SSD.Source
	before := t.model.Model.TableSnapshot
	held, err := t.model.Model.HoldTable(ctx, t.options.Logger)
	if err == nil && t.options.SnapshotID == before {
		t.options.SnapshotID = t.model.Model.TableSnapshot
	}
	return held, err
}

// notArrived returns how many bytes of the table were read from a remote directory because they had
// not arrived yet.
func (t *foundTable) notArrived() (bytes int64, uri string) {
	if t.model == nil {
		return 0, ""
	}
	return t.model.NotArrived()
}

// close ends the use of the table, so that a model's table may be deleted.
func (t *foundTable) close() {
	if t.model != nil {
		_ = t.model.Close() // it was only read
	}
}

// closeTable closes a table that was read.
func closeTable(log *slog.Logger, t sparsetable.Table) { cmdline.CloseWith(log, "the table", t) }

// schemaOf returns the schema by which a table's keys are computed: that of its model,
// or of the job that --job names.
func (t *foundTable) schemaOf(c *cli.Context) (*reader.Schema, error) {
	if path := c.String("job"); path != "" {
		job, err := cmdline.JobOfFlags(c, path)
		if err != nil {
			return nil, err
		}
		s, err := jobparts.Schema(job)
		return &s, err
	}
	if t.model == nil {
		return nil, cliargs.Errorf("%s: the key of FIELD=VALUE depends on the schema of a job: name the model directory, or the job file with --job", cliargs.CommandPath(c))
	}
	return &t.model.Schema, nil
}

// rows says where the table is and what it belongs to.
func (t *foundTable) rows(row func(name, format string, args ...any)) {
	row("table", "%s, kind %s", t.dir(), t.options.Kind)
	if t.model != nil {
		m := &t.model.Model.Manifest
		row("model", "%s in %s, step %d", t.model.Job.Model.Kind, t.model.Model.Name, m.Step)
	}
}
