package cmdline

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/configs"
	"aibox/internal/cliargs"
)

func JobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "set", Usage: "override a value of the job file: `KEY=VALUE`, such as training.epochs=2 or 'data.train=[a.tsv,b.tsv]'; may be repeated"},
		DateFlag(),
	}
}

// Formats are the names of all formats of data files.
var Formats = []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"}

// LoadJob reads the job file that is the command's only argument.
func LoadJob(c *cli.Context) (*configs.Job, error) {
	path, err := cliargs.OneArgument(c, "the job file")
	if err != nil {
		return nil, err
	}
	return JobOfFlags(c, path)
}

// JobOfFlags reads a job file with the overrides and the date of the JobFlags.
func JobOfFlags(c *cli.Context, path string) (*configs.Job, error) {
	dated, err := DatedJob(c)
	if err != nil {
		return nil, err
	}
	if path, err = Expand(c, dated, "the job file", path); err != nil {
		return nil, err
	}
	job, err := configs.Load(path, configs.LoadOptions{Set: c.StringSlice("set"), Date: c.String("date")})
	if err != nil {
		return nil, err
	}
	for _, note := range job.Notes() {
		NewLogger(c).Info(note)
	}
	for _, warning := range job.Warnings() {
		NewLogger(c).Warn(warning)
	}
	return job, nil
}

// ModelArgument returns the command's only argument, which names a model directory or one of
// its generations, and a job with the date for templates in other arguments. The argument may be the
// URI of a remote directory: then the job says how HDFS is reached.
func ModelArgument(c *cli.Context) (string, *configs.Job, error) {
	dir, err := cliargs.OneArgument(c, "the model directory")
	if err != nil {
		return "", nil, err
	}
	alone := DatedAlone
	if strings.Contains(dir, "://") {
		alone = DatedWithHDFS
	}
	dated, err := alone(c)
	if err != nil {
		return "", nil, err
	}
	dir, err = Expand(c, dated, "the model directory", dir)
	return dir, dated, err
}

// BytesFlag is the value of a flag that is a number of bytes, such as 100MiB; 0 if the flag
// was not given and has no default.
func BytesFlag(c *cli.Context, name string) (int64, error) {
	text := c.String(name)
	if text == "" && !c.IsSet(name) {
		return 0, nil
	}
	n, err := configs.ParseBytes(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q: want more than 0", text)
	}
	if err != nil {
		return 0, cliargs.Errorf("%s: --%s: %v", cliargs.CommandPath(c), name, err)
	}
	return int64(n), nil
}

// SplitNames splits a list of names at commas. A name that begins with a quotation mark ends with the
// next one, as a cell of CSV does, and may have commas in it, and quotation marks that are doubled.
func SplitNames(list string) (names []string) {
	var name []byte
	begins, quoted := true, false
	for i := 0; i < len(list); i++ {
		c := list[i]
		switch {
		case c == ',' && !quoted:
			names, name, begins = append(names, string(name)), nil, true
			continue
		case c == '"' && quoted && strings.HasPrefix(list[i+1:], `"`):
			name = append(name, c)
			i++
		case c == '"' && (quoted || begins):
			quoted = !quoted
		default:
			name = append(name, c)
		}
		begins = false
	}
	if list == "" {
		return nil
	}
	return append(names, string(name))
}
