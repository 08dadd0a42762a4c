package configs

import "bytes"

//go:generate go test -run TestPageIsCurrent . -rewrite

// pageIntroduction is the part of docs/job-file.md that does not come from the
// table of keys.
const pageIntroduction = "# The job file\n" + `
<!-- Generated from package configs by "go generate ./configs"; do not edit. -->

A job is one YAML file. ` + "`aibox config init --model dlrm --format criteo`" + ` prints a
commented one to start from, ` + "`aibox config check JOB.yaml`" + ` reports every fault of
a file in one go, and ` + "`aibox config show JOB.yaml`" + ` prints it with all defaults
filled in. The folder [configs](../configs) holds complete examples.

Checking is strict: a key that does not exist, that is given twice, or that has
no effect in this job (` + "`cross_layers`" + ` of a model without cross layers) is a fault.
Only four keys must be given: ` + "`data.train`" + `, ` + "`data.format`" + `, ` + "`model.kind`" + ` and
` + "`output.model_dir`" + `; most formats need ` + "`data.columns`" + ` too.

## Values

- *Integers* may be written 1000000, 1_000_000 or 1e6.
- *Sizes* are numbers of bytes, or numbers with a unit: 64KiB, 512MiB, 8GiB (and
  64k, 512M, 8G) are powers of 1024; 8GB is a power of 1000.
- *Text* that looks like a number, and text with special characters, needs
  quotation marks: ` + "`separator: \"|\"`" + `.
- Anchors, aliases and merge keys (` + "`&a`, `*a`, `<<: *a`" + `) work. Top-level keys that
  begin with ` + "`x-`" + ` are ignored, as a place for anchors.

## Templates

Values of the keys that are marked with *templates* below may contain the date of
the job, which is that of ` + "`--date`" + ` or today (in the job's time zone), and
environment variables:

| template | with ` + "`--date 2026-11-20`" + ` |
| --- | --- |
| ` + "`{{date}}`" + ` | 2026-11-20 |
| ` + "`{{date -1d}}`" + ` | 2026-11-19; offsets in days (d), weeks (w) and hours (h) |
| ` + "`{{date \"20060102\"}}`" + ` | 20261120; the layout is how 2 January 2006, 15 h, would be written |
| ` + "`{{date -1d \"2006/01/02\"}}`" + ` | 2026/11/19 |
| ` + "`${NAME}`" + ` | the environment variable, which must be set |
| ` + "`${NAME:-default}`" + ` | the same, or the default where it is unset or empty |

` + "`$NAME` and a leading `~/`" + ` are faults: write ` + "`${NAME}` and `${HOME}/`" + `.

## Overrides

` + "`--set key=value`" + ` overrides a key and may be repeated. Values are YAML:

    aibox train JOB.yaml --set model.kind=dcn_v2 --set 'data.train=[a.csv, b.csv]' \
        --set 'data.columns[2].role=ignore'

An index one past the end appends to a list. Keys of the file that have no effect any more
because of an override, such as ` + "`cross_layers`" + ` with another ` + "`model.kind`" + `, are left out, and
the log says so.

## Keys
`

// page prints docs/job-file.md.
func page() []byte {
	var b bytes.Buffer
	b.WriteString(pageIntroduction)
	table.Document(&b)
	return b.Bytes()
}
