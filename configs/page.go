package configs

import "bytes"

//go:generate go test -run TestPageIsCurrent . -rewrite

// pageIntroduction is the part of docs/job-file.md that does not come from the
// table of keys.
const pageIntroduction = "# The job file\n" + `
<!-- Generated from package configs by "go generate ./configs"; do not edit. -->

A job is one YAML file. ` + "`aibox config init --model dlrm --format criteo`" + ` prints a
commented one to start from, ` + "`aibox config check JOB.yaml`" + ` reports all errors
in a file at once, and ` + "`aibox config show JOB.yaml`" + ` prints it with all defaults
filled in. The folder [configs](../configs) holds complete examples.

Checking is strict: a key that does not exist, is given twice, or has no effect in
this job (` + "`cross_layers`" + ` of a model without cross layers) is an error.
Only four keys are required: ` + "`data.train`" + `, ` + "`data.format`" + `, ` + "`model.kind`" + ` and
` + "`output.model_dir`" + `; most formats need ` + "`data.columns`" + ` too.

## Values

- *Integers* may be written as 1000000, 1_000_000 or 1e6.
- *Sizes* are numbers of bytes, or numbers with a unit. The units of 64KiB, 512MiB and
  8GiB (or 64k, 512M and 8G) are powers of 1024; those of 8GB are powers of 1000.
- *Text* that looks like a number, and text with special characters, needs
  quotation marks: ` + "`separator: \"|\"`" + `.
- Anchors, aliases and merge keys (` + "`&a`, `*a`, `<<: *a`" + `) work. Top-level keys that
  start with ` + "`x-`" + ` are ignored, so that they can hold anchors.

## Templates

The values of keys marked *templates* below may contain environment variables and the
job's date, which is that of ` + "`--date`" + ` or today in the job's time zone:

| template | with ` + "`--date 2026-11-20`" + ` |
| --- | --- |
| ` + "`{{date}}`" + ` | 2026-11-20 |
| ` + "`{{date -1d}}`" + ` | 2026-11-19; offsets in days (d), weeks (w) and hours (h) |
| ` + "`{{date \"20060102\"}}`" + ` | 20261120; the layout shows how to write 2 January 2006, 15 h |
| ` + "`{{date -1d \"2006/01/02\"}}`" + ` | 2026/11/19 |
| ` + "`${NAME}`" + ` | the environment variable, which must be set |
| ` + "`${NAME:-default}`" + ` | the same, or the default if it is unset or empty |

` + "`$NAME` and a leading `~/`" + ` are errors: write ` + "`${NAME}` and `${HOME}/`" + `.

## Overrides

` + "`--set key=value`" + ` overrides a key and may be repeated. Values are YAML:

    aibox train JOB.yaml --set model.kind=dcn_v2 --set 'data.train=[a.csv, b.csv]' \
        --set 'data.columns[2].role=ignore'

An index one past the end appends to a list. If an override leaves a key of the file without
effect, such as ` + "`cross_layers`" + ` with another ` + "`model.kind`" + `, the key is dropped, and the log
says so.

## Keys
`

// page prints docs/job-file.md.
func page() []byte {
	var b bytes.Buffer
	b.WriteString(pageIntroduction)
	table.Document(&b)
	return b.Bytes()
}
