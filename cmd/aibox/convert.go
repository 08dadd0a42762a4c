package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader"
	"aibox/reader/convert"
	"aibox/reader/rowschema"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
)

func convertCommand() *cli.Command {
	return &cli.Command{
		Name:  "convert",
		Usage: "convert, join, sort and split data files",
		Description: `Reads rows in any format and writes them in any other. The formats follow from the file
names (.csv, .tsv, .libsvm, .libffm, .parquet, also compressed); other names need
--from-format or --to-format.

A job file (--job) describes the columns: which are labels, dense or sparse, and how
several values in a cell are separated. It also gives the format of input whose name does
not tell, and the maximum line length (data.max_line_bytes). For input in the job's
format, it says whether there is a header and how the files are compressed. Without a job
file, columns are text and named by the header. Writing LibSVM or LibFFM needs a job file
that says which columns are features.

From Parquet to Parquet, columns keep their types. In text formats, the values of a list
are separated by the column's separator, or by "|" if it has none. CSV and TSV are
written with a header, and with the format's own delimiter and quoting, whatever the job
file says about its input.

Joined tables are held in memory, and so are the rows if they are sorted. A split that is
not random reads the rows twice.

Examples:

  aibox convert --from day_0.gz --from-format criteo --to day_0.parquet
  aibox convert --from ratings.csv --join movies.csv --on movieId --add genres \
      --sort-by timestamp --split 0.8 --to train.csv --to eval.csv
  aibox convert --job configs/movielens-csv.yaml --from train.csv --to train.libffm`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "from", Usage: "input `URI`: a path, a glob or hdfs://…; may be repeated"},
			&cli.StringSliceFlag{Name: "to", Usage: "output `FILE`; two with --split"},
			&cli.StringFlag{Name: "from-format", Usage: "`FORMAT` of the input: criteo, csv, tsv, libsvm, libffm or parquet (default: inferred from its name, or taken from --job)"},
			&cli.StringFlag{Name: "to-format", Usage: "`FORMAT` of the output (default: inferred from its name)"},
			&cli.BoolFlag{Name: "no-header", DefaultText: "taken from --job for input in its format, otherwise false", Usage: "csv, tsv: the input's first line is a row; --job names the columns"},
			&cli.StringFlag{Name: "job", Usage: "job `FILE` whose data section describes the columns"},
			&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job file: `KEY=VALUE`; without --job, only data.hdfs.KEY and timezone"},
			cmdline.DateFlag(),
			&cli.StringFlag{Name: "columns", Usage: "columns to write, in order: `NAME,NEW=OLD`; quote a name with a comma as in CSV; may include partition columns, from directories such as dt=2026-11-20, and columns in Parquet groups, as GROUP.COLUMN (default: all columns of the files)"},
			&cli.StringFlag{Name: "join", Usage: "`FILE` of a side table whose columns are added to every row: csv, tsv or Parquet with named columns; a path, a glob or a directory"},
			&cli.StringFlag{Name: "join-format", Usage: "`FORMAT` of the side table: csv, tsv or parquet (default: inferred from its name)"},
			&cli.StringFlag{Name: "on", Usage: "`COLUMN` to join by, in the rows and, without --key, in the side table"},
			&cli.StringFlag{Name: "key", Usage: "`COLUMN` of the side table to join by (default: that of --on)"},
			&cli.StringFlag{Name: "add", Usage: "columns of the side table to add: `NAME,NAME` (default: all)"},
			&cli.StringFlag{Name: "sort-by", Usage: "`COLUMN` to sort by; its cells are compared as numbers if all of them are numbers"},
			&cli.BoolFlag{Name: "descending", Usage: "sort in descending order"},
			&cli.Float64Flag{Name: "split", Usage: "`SHARE` of the rows, from the start, that go to the first of two outputs"},
			&cli.BoolFlag{Name: "random", Usage: "with --split: draw each row's output at random instead"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` of a random split"},
			&cli.Int64Flag{Name: "limit", Usage: "convert at most `NUMBER` rows; 0: all"},
			&cli.Int64Flag{Name: "max-bad-rows", Usage: "stop when more than `NUMBER` rows are bad or lost; -1: never"},
			&cli.Float64Flag{Name: "max-lost-fraction", Usage: "stop when more than this `SHARE` of the input's bytes is lost to damage; lost rows also count toward --max-bad-rows"},
			&cli.StringFlag{Name: "memory", Value: "4GiB", Usage: "`LIMIT` for rows and tables held in memory"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
		},
		Action: convertFiles,
	}
}

func convertFiles(c *cli.Context) error {
	if err := cliargs.NoArguments(c); err != nil {
		return err
	}
	if err := cliargs.NeedFlags(c, "from", "to"); err != nil {
		return err
	}
	log := cmdline.NewLogger(c)
	o, job, err := convertOptions(c)
	if err != nil {
		return err
	}
	o.From.Logger = log
	o.From.Sources = jobsource.New(job, log)
	defer cmdline.CloseWith(log, "sources", o.From.Sources)
	for i := range o.Joins {
		o.Joins[i].Table.Sources = o.From.Sources
	}
	if path := job.File(); path != "" {
		if err := o.From.Sources.RefuseOverwrite(c.Context, []string{path}, o.To); err != nil {
			return err
		}
	}
	s, err := convert.Run(c.Context, o)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return cmdline.PrintJSON(c.App.Writer, s)
	}
	for i, n := range s.Written {
		fmt.Fprintf(c.App.Writer, "%s written to %s\n", humanize.Count(n, "row"), o.To[i])
	}
	if settings := otherDialect(job, o.Format); len(settings) > 0 {
		fmt.Fprintf(c.App.Writer, "the output has a header and the delimiter and quoting of %v: the job that reads it needs the default of %s\n", o.Format, strings.Join(settings, " and "))
	}
	for _, l := range s.Lists {
		fmt.Fprintf(c.App.Writer, "column %s was a list and is now text: the job that reads it needs separator: %q\n", l.Column, l.Separator)
	}
	if s.Label != "" {
		fmt.Fprintf(c.App.Writer, "column %s is now 0 or 1, by the rule in data.label: the job that reads it needs label: %[1]s\n", s.Label)
	}
	for _, n := range s.Unmatched {
		if n > 0 {
			fmt.Fprintf(c.App.Writer, "the joined table has no match for %s; its columns are empty there\n", humanize.Count(n, "row"))
		}
	}
	if s.Counts.BadRows > 0 {
		fmt.Fprintf(c.App.Writer, "convert left out %s\n", humanize.Count(s.Counts.BadRows, "bad row"))
		for _, bad := range s.Counts.Bad {
			fmt.Fprintf(c.App.Writer, "  %d, the first at %v\n", bad.Rows, bad.Example)
		}
	}
	for _, l := range s.Counts.Lost {
		fmt.Fprintf(c.App.Writer, "data are lost: %v\n", l)
	}
	return nil
}

// otherDialect lists the job's settings that do not match text of that format as it is written
// here: with a header, and with the format's own delimiter and quoting.
func otherDialect(job *configs.Job, to reader.Format) (settings []string) {
	own := map[string][2]string{"csv": {",", "rfc4180"}, "tsv": {"\t", "none"}}
	d := &job.Data
	of, text := own[to.String()]
	if !text || d.Format != to.String() {
		return nil
	}
	if d.Header != nil && !*d.Header {
		settings = append(settings, "header")
	}
	if d.Delimiter != "" && d.Delimiter != of[0] {
		settings = append(settings, "delimiter")
	}
	if d.Quoting != "" && d.Quoting != of[1] {
		settings = append(settings, "quoting")
	}
	return settings
}

// convertOptions turns flags into options. The job is that of the job file, or an
// empty one.
func convertOptions(c *cli.Context) (convert.Options, *configs.Job, error) {
	fail := func(err error) (convert.Options, *configs.Job, error) {
		return convert.Options{}, nil, err
	}
	var described reader.Schema // that of the job file
	fromFormat := c.String("from-format")
	var job *configs.Job
	var err error
	if path := c.String("job"); path != "" {
		if job, err = cmdline.JobOfFlags(c, path); err != nil {
			return fail(err)
		}
		if described, err = jobparts.Schema(job); err != nil {
			return fail(errkind.As(errkind.Job, err))
		}
		if _, known := rowschema.FormatOf(c.StringSlice("from")[0]); !known && fromFormat == "" {
			fromFormat = described.Format.String()
		}
	} else if job, err = cmdline.DatedWithHDFS(c); err != nil {
		return fail(err)
	}
	if err := checkConvertFlags(c); err != nil {
		return fail(err)
	}
	inputs, err := cmdline.PathFlags(c, job, "from")
	if err != nil {
		return fail(err)
	}
	outputs, err := cmdline.PathFlags(c, job, "to")
	if err != nil {
		return fail(err)
	}
	side, err := cmdline.PathFlag(c, job, "join")
	if err != nil {
		return fail(err)
	}
	from, err := formatOfAll(fromFormat, inputs, "--from-format")
	if err != nil {
		return fail(err)
	}
	header := !c.Bool("no-header")
	if c.IsSet("job") && !c.IsSet("no-header") && described.Format == from {
		header = described.Header
	}
	to, err := formatOfAll(c.String("to-format"), outputs, "--to-format")
	if err != nil {
		return fail(err)
	}
	memory, err := cmdline.BytesFlag(c, "memory")
	if err != nil {
		return fail(err)
	}
	o := convert.Options{
		From: reader.Options{
			URIs: inputs, Limit: c.Int64("limit"), MaxBadRows: c.Int64("max-bad-rows"), MaxBadFraction: -1,
			MaxLostFraction: c.Float64("max-lost-fraction"), MaxLineBytes: int(job.Data.MaxLineBytes),
			HideCells: c.String("job") != "" && job.Data.QuarantineRows == 0,
		},
		SortBy: c.String("sort-by"), Descending: c.Bool("descending"),
		Split: convert.Split{Fraction: c.Float64("split"), Random: c.Bool("random"), Seed: c.Uint64("seed")},
		To:    outputs, Format: to, Header: true, MemoryBytes: memory,
	}
	if described.Format == from {
		o.From.Compression = job.Data.Compression
	}
	o.From.Schema = inputSchema(from, header, described)
	if c.Bool("no-header") && len(o.From.Schema.Columns) == 0 {
		return fail(cliargs.Errorf("aibox convert: --no-header needs a job file (--job) whose data section names the columns"))
	}
	if side != "" {
		format, err := formatOf(c.String("join-format"), side, "--join-format")
		if err != nil {
			return fail(err)
		}
		if format == reader.FormatLibSVM || format == reader.FormatLibFFM || format == reader.FormatCriteo {
			return fail(cliargs.Errorf("aibox convert: --join %s: the format of a side table must be csv, tsv or parquet, whose columns have names, not %v", side, format))
		}
		o.Joins = []convert.Join{{
			Table: reader.Options{URIs: []string{side}, Schema: reader.Schema{Format: format, Header: true}},
			On:    c.String("on"), Key: c.String("key"), Add: cmdline.SplitNames(c.String("add")),
		}}
	}
	o.Columns = outputColumns(cmdline.SplitNames(c.String("columns")), described)
	return o, job, nil
}

// checkConvertFlags fails if a flag has a bad value, or lacks another that it needs.
func checkConvertFlags(c *cli.Context) error {
	to, split := len(c.StringSlice("to")), c.Float64("split")
	switch {
	case c.IsSet("split") && !(split > 0 && split < 1):
		return cliargs.Errorf("aibox convert: --split %v: want a share between 0 and 1, such as 0.8", split)
	case c.IsSet("split") && to != 2:
		return cliargs.Errorf("aibox convert: --split writes two files, so --to is needed twice")
	case !c.IsSet("split") && to > 1:
		return cliargs.Errorf("aibox convert: --to was given %d times; give it once, or twice with --split", to)
	case c.Bool("random") && !c.IsSet("split"), c.IsSet("seed") && !c.Bool("random"):
		return cliargs.Errorf("aibox convert: --seed needs --random, and --random needs --split")
	case c.Bool("descending") && c.String("sort-by") == "":
		return cliargs.Errorf("aibox convert: --descending needs --sort-by")
	case !(c.Float64("max-lost-fraction") >= 0 && c.Float64("max-lost-fraction") <= 1):
		return cliargs.Errorf("aibox convert: --max-lost-fraction %v: want a share from 0 to 1", c.Float64("max-lost-fraction"))
	case c.Int64("max-bad-rows") < -1:
		return cliargs.Errorf("aibox convert: --max-bad-rows %d: want 0 or more, or -1", c.Int64("max-bad-rows"))
	case c.Int64("limit") < 0:
		return cliargs.Errorf("aibox convert: --limit %d: want 0 or more", c.Int64("limit"))
	case c.String("join") == "" && (c.IsSet("on") || c.IsSet("key") || c.IsSet("add") || c.IsSet("join-format")):
		return cliargs.Errorf("aibox convert: --on, --key, --add and --join-format need --join")
	case c.String("join") != "" && c.String("on") == "":
		return cliargs.Errorf("aibox convert: --join needs --on, the column that joins the rows and the table")
	}
	return nil
}

// formatOfAll returns the format of several files, which must be one.
func formatOfAll(name string, files []string, flag string) (reader.Format, error) {
	first, err := formatOf(name, files[0], flag)
	if err != nil {
		return 0, err
	}
	for _, file := range files[1:] {
		if f, err := formatOf(name, file, flag); err != nil {
			return 0, err
		} else if f != first {
			return 0, cliargs.Errorf("aibox convert: according to their names, the format of %s is %v and that of %s is %v; all files must have the same format, which %s can set", files[0], first, file, f, flag)
		}
	}
	return first, nil
}

// inputSchema returns the schema of the input: the job's schema if it is for the same
// format and header, and otherwise a schema without columns, which are then named by
// the header. The label is the job's in either case.
func inputSchema(format reader.Format, header bool, described reader.Schema) reader.Schema {
	s := reader.Schema{Format: format, Header: header}
	if format == reader.FormatCriteo {
		s = rowschema.CriteoSchema()
	}
	if described.Format == format && (described.Header == header || format == reader.FormatParquet) {
		s = described
	}
	s.Label = described.Label
	return s
}

// outputColumns describes the named columns, as the job does if it has them.
func outputColumns(names []string, described reader.Schema) []convert.OutputColumn {
	var out []convert.OutputColumn
	indices := described.ColumnIndices()
	for _, n := range names {
		name, old, renamed := strings.Cut(n, "=")
		col := reader.Column{Name: name}
		if i, ok := indices[name]; ok {
			col = described.Columns[i]
		}
		if !renamed {
			old = name
		}
		out = append(out, convert.OutputColumn{From: old, Column: col})
	}
	return out
}

// formatOf returns the format called name or, if name is empty, the format that the
// file's name says.
func formatOf(name, file, flag string) (reader.Format, error) {
	if name != "" {
		f, err := rowschema.ParseFormat(name)
		if err != nil {
			return 0, cliargs.Errorf("%s %s: want one of %s.%s", flag, name, strings.Join(cmdline.Formats, ", "), cliargs.DidYouMean("", name, cmdline.Formats))
		}
		return f, nil
	}
	f, ok := rowschema.FormatOf(file)
	if !ok {
		return 0, cliargs.Errorf("the format of %s cannot be inferred from its name; give %s", file, flag)
	}
	return f, nil
}
