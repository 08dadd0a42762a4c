package tablecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/internal/rowfile"
	"aibox/internal/terminal"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/jobsource"
)

func importcommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "import rows from Parquet files into a table",
		ArgsUsage: "DIR",
		Description: `Creates a table in DIR, or adds rows to the table there, replacing rows with the same
keys. The files come from export, or have at least the columns key (64-bit integer) and
values (list of float). state, show, click and last_seen default to zero, count to one.
Rows with a count of zero are skipped. At the end the table takes a snapshot, which
replaces the previous one. If the import fails, an existing table is unchanged, and a new
one is deleted. Rows cannot be imported into the table of a model, which only training
writes.

Examples:

  aibox table import /mnt/ssd0/table --from rows.parquet
  aibox table import table --kind memory --from 'parts/*.parquet' --json`,
		Flags: append(tableFlags(
			&cli.StringSliceFlag{Name: "from", Usage: "input `URI`: a path, a glob or hdfs://…; may be repeated"},
			&cli.StringFlag{Name: "kind", Usage: "`KIND` of a new table: ssd (default) or memory"},
			&cli.StringFlag{Name: "value-format", Usage: "`FORMAT` of the values of a new table: float32, float16 or bfloat16 (default: that of the exported table)"},
			cmdline.JSONFlag(),
		), cmdline.HDFSFlags()...),
		Action: tableImport,
	}
}

// Kinds are the values of --kind.
var Kinds = []string{sparsetable.KindSSD, sparsetable.KindMemory}

// ImportReport is what import prints as JSON.
type ImportReport struct {
	Dir      string   `json:"dir"`
	Kind     string   `json:"kind"`
	Files    []string `json:"files"`
	Read     int64    `json:"rows_read"`
	Imported int64    `json:"rows_imported"`
	Rows     int64    `json:"table_rows"`
	Snapshot uint64   `json:"snapshot"`
}

func tableImport(c *cli.Context) error {
	if err := cliargs.NeedFlags(c, "from"); err != nil {
		return err
	}
	if c.IsSet("kind") {
		if err := cliargs.OneOf(c, "kind", Kinds); err != nil {
			return err
		}
	}
	if c.IsSet("value-format") {
		if err := cliargs.OneOf(c, "value-format", sparsetable.ValueFormats()); err != nil {
			return err
		}
	}
	dir, err := cliargs.OneArgument(c, "the directory of the table")
	if err != nil {
		return err
	}
	dated, err := cmdline.DatedWithHDFS(c)
	if err != nil {
		return err
	}
	if dir, err = cmdline.Expand(c, dated, "the table", dir); err != nil {
		return err
	}
	from, err := cmdline.PathFlags(c, dated, "from")
	if err != nil {
		return err
	}
	more, err := cmdline.PathFlags(c, dated, "dir")
	if err != nil {
		return err
	}
	o, err := importOptions(c, dir, more)
	if err != nil {
		return err
	}
	log := cmdline.NewLogger(c)
	sources := jobsource.New(dated, log)
	defer cmdline.CloseWith(log, "sources", sources)
	var written []string // one file per directory stands for all that are written there
	for _, d := range append([]string{dir}, more...) {
		written = append(written, filepath.Join(d, "catalog"))
	}
	if err := sources.RefuseOverwrite(c.Context, from, written); err != nil {
		return err
	}
	files, err := sources.Expand(c.Context, from)
	if err != nil {
		return err
	}
	in := &rowFiles{ctx: c.Context, sources: sources, left: files}
	defer cmdline.CloseWith(log, "input", in)
	if err := in.open(); err != nil { // before a table is made
		return err
	}
	r := &ImportReport{Dir: dir, Kind: o.Kind}
	for _, f := range files {
		r.Files = append(r.Files, f.URI)
	}
	if err := importInto(c, o, in, r); err != nil {
		return err
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, r)
	}
	text := fmt.Sprintf("%s imported into %s, which has %d now", humanize.Count(r.Imported, "row"), dir, r.Rows)
	if passed := r.Read - r.Imported; passed > 0 {
		text += fmt.Sprintf("; %d rows with a count of zero were skipped", passed)
	}
	_, err = fmt.Fprintln(c.App.Writer, text)
	return err
}

// importOptions returns the options of the table in dir and in more directories, or of
// a new table there.
func importOptions(c *cli.Context, dir string, more []string) (sparsetable.Options, error) {
	o := sparsetable.Options{Kind: c.String("kind"), Dir: dir, Logger: cmdline.NewLogger(c)}
	if exists(filepath.Join(dir, "MODEL.json")) {
		return o, cliargs.Errorf("%s: %s is a model directory, and only training writes its table; import into another directory", cliargs.CommandPath(c), dir)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return o, cliargs.Errorf("%s: %s is a file; name the directory of a table", cliargs.CommandPath(c), dir)
	}
	dirs := append([]string{dir}, more...)
	if err := refuseModelDirs(c, dirs...); err != nil {
		return o, err
	}
	there, err := tableOfDirs(c, dirs)
	if err != nil {
		return o, fmt.Errorf("%w; import into an empty directory or a complete table", err)
	}
	if there != nil {
		kind := there.options.Kind
		if o.Kind != "" && o.Kind != kind {
			return o, cliargs.Errorf("%s: --kind %s: the table in %s is of kind %s", cliargs.CommandPath(c), o.Kind, dir, kind)
		}
		o.Kind = kind
	}
	if o.Kind == "" {
		o.Kind = sparsetable.KindSSD
	}
	if len(more) > 0 {
		if o.Kind != sparsetable.KindSSD {
			return o, cliargs.Errorf("%s: --dir: a table of kind memory has only one directory", cliargs.CommandPath(c))
		}
		o.SSD.Dirs = dirs
	}
	o.MemoryBytes, err = cmdline.BytesFlag(c, "memory")
	return o, err
}

// importInto opens or makes the table and imports the rows. If it fails, it deletes
// what it made.
func importInto(c *cli.Context, o sparsetable.Options, in *rowFiles, r *ImportReport) (err error) {
	t, infos, undo, err := openForImport(c, o, in)
	if undo != nil {
		defer func() {
			if err != nil {
				err = errors.Join(err, undo())
			}
		}()
	}
	if err != nil {
		return err
	}
	defer func() {
		closed := t.Close()
		if closed != nil && r.Snapshot != 0 {
			o.Logger.Warn("the rows are imported, but the table could not be closed properly", "error", closed)
			return
		}
		err = errors.Join(err, closed)
	}()
	want := t.Layout()
	if have := in.layout; have != nil && (have.ValueDim != want.ValueDim || have.StateDim != want.StateDim) {
		return cliargs.Errorf("%s: the rows of %s have %v, those of the table have %v", cliargs.CommandPath(c), in.layoutOf, *have, want)
	} else if c.IsSet("value-format") && c.String("value-format") != want.Format.String() {
		return cliargs.Errorf("%s: --value-format %s: the table in %s has %v values", cliargs.CommandPath(c), c.String("value-format"), o.Dir, want.Format)
	}
	if err := refuseModelSnapshots(c, o.Dir, infos); err != nil {
		return err
	}
	in.setFormat(want.Format)
	progress, d := terminal.StartTask(cmdline.ConsoleOf(c), o.Logger, "importing", "rows", 0)
	defer d.Stop()
	in.each = func(read int64) { progress.SetDone(read) }
	if o.Kind == sparsetable.KindSSD {
		// Many rows wait in a spool until all are read.
		in.ended = func() {
			progress.Next("writing", "rows", in.read, func() int64 { return min(in.read, t.Stats().FlushedRows) })
		}
	}
	if len(in.left) == 0 && in.reader != nil {
		progress.SetTotal(in.reader.Rows())
	}
	if r.Imported, err = t.Import(c.Context, in); err != nil {
		return err
	}
	r.Read = in.read
	var record []byte
	if len(infos) > 0 {
		record = infos[len(infos)-1].Record
	}
	if r.Snapshot, err = replaceSnapshot(c.Context, t, record, nil); err != nil {
		return err
	}
	r.Rows = t.Stats().Rows
	if len(infos) > 0 {
		old := infos[len(infos)-1].ID
		if err := t.DropSnapshot(old); err != nil { // the new one is committed: the import has not failed
			o.Logger.Warn("the rows are imported, but the table's earlier snapshot could not be deleted, and keeps its files: delete it with `aibox table compact --drop-older`", "snapshot", old, "error", err)
		}
	}
	return nil
}

// rowFiles are the rows of several files, one after the other.
type rowFiles struct {
	ctx     context.Context
	sources *source.Sources
	left    []source.File
	each    func(read int64) // called after each row, unless it is nil
	ended   func()           // called at the end of the last file, unless it is nil
	read    int64

	format *sparsetable.ValueFormat // of the rows; nil: that of the files

	layout   *sparsetable.Layout // of the rows; nil: not known yet
	layoutOf string              // the file that layout is from
	hadRows  bool                // that file has rows
	noRows   error               // about the first file that has neither rows nor a layout

	file   *remembering
	reader *rowfile.Reader // of file; nil: there are no rows left
}

// remembering remembers the first failed read, which the Parquet library reports as
// damage of the file.
type remembering struct {
	source.ReaderAtCloser
	failed error
}

func (r *remembering) ReadAt(p []byte, offset int64) (int, error) {
	n, err := r.ReaderAtCloser.ReadAt(p, offset)
	if err != nil && r.failed == nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	return n, err
}

// open opens the next file with rows; reader is nil if there is none. The layout of a
// file without rows counts only until there is a file with rows.
func (in *rowFiles) open() error {
	for len(in.left) > 0 {
		if err := in.Close(); err != nil {
			return err
		}
		f := in.left[0]
		in.left = in.left[1:]
		at, err := in.sources.OpenAt(in.ctx, f)
		if err != nil {
			return err
		}
		in.file = &remembering{ReaderAtCloser: at}
		r, err := rowfile.NewReader(in.file, f.Size, f.URI)
		if err != nil && in.file.failed == nil && errors.Is(err, rowfile.ErrNoRows) {
			if in.noRows == nil {
				in.noRows = err
			}
			continue
		}
		if err != nil {
			return in.cause(err)
		}
		rows, l := r.Rows() > 0, r.Layout()
		if in.layout == nil || rows && !in.hadRows {
			in.layout, in.layoutOf, in.hadRows = &l, f.URI, rows
		}
		if !rows {
			continue
		}
		if in.layout.ValueDim != l.ValueDim || in.layout.StateDim != l.StateDim {
			return &rowfile.FormatError{File: f.URI, Err: fmt.Errorf("its rows have %v, those of the preceding files have %v", l, *in.layout)}
		}
		if in.format != nil {
			r.SetFormat(*in.format)
		}
		in.reader = r
		return nil
	}
	return in.Close()
}

// setFormat sets the format of the values of the rows that Next returns.
func (in *rowFiles) setFormat(f sparsetable.ValueFormat) {
	in.format = &f
	if in.reader != nil {
		in.reader.SetFormat(f)
	}
}

func (in *rowFiles) cause(err error) error {
	if failed := in.file.failed; failed != nil {
		return failed
	}
	return err
}

// Next implements sparsetable.RowSource.
func (in *rowFiles) Next() (uint64, []float32, error) {
	for in.reader != nil {
		key, row, err := in.reader.Next()
		if err == nil {
			in.read++
			if in.each != nil {
				in.each(in.read)
			}
			return key, row, nil
		}
		if err != io.EOF {
			return 0, nil, in.cause(err)
		}
		if err := in.open(); err != nil {
			return 0, nil, err
		}
	}
	if in.ended != nil {
		in.ended()
	}
	return 0, nil, io.EOF
}

// Close closes the file that is being read.
func (in *rowFiles) Close() error {
	var errs []error
	if in.reader != nil {
		errs = append(errs, in.reader.Close())
		in.reader = nil
	}
	if in.file != nil {
		errs = append(errs, in.file.Close())
		in.file = nil
	}
	return errors.Join(errs...)
}
