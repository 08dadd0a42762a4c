package configs

import (
	"path/filepath"
	"strconv"
	"strings"
)

var (
	textFormats  = []string{"csv", "tsv"}
	tableFormats = []string{"csv", "tsv", "parquet"}
)

var topKeys = []Key{
	{Path: "name", Meaning: "Name of the job in logs and summaries.", Template: true,
		DefaultFrom: func(s scope) string {
			return yamlText(strings.TrimSuffix(filepath.Base(s.job.file), filepath.Ext(s.job.file)))
		}, DefaultNote: "the job file's name without its ending"},
	{Path: "seed", Meaning: "Every random choice (new rows, weights, shuffling, dropout, sampling) is a function of it.", Default: "1"},
	{Path: "timezone", Tuning: true,
		DefaultFrom: func(s scope) string { return yamlText(s.job.zone) }, DefaultNote: "the system's",
		Meaning: "Time zone that the job's date is of, such as UTC or Asia/Shanghai: {{date}}, --date and the age of rows follow it."},
	{Path: "data", Meaning: "Where the examples are and how to read them."},
	{Path: "model", Meaning: "The network."},
	{Path: "optimizer", Meaning: "How parameters change: one optimizer for the dense network, one for embedding rows."},
	{Path: "training", Meaning: "How long to train, and on what terms."},
	{Path: "sparse_table", Meaning: "The embedding table."},
	{Path: "pipeline", Meaning: "Sizes of the three stages. Nothing here changes the model."},
	{Path: "output", Meaning: "What is written, and where."},
	{Path: "generate", Meaning: "The known model that `aibox generate` draws examples from. Training does not look at it, except that it gives every format but criteo its default columns."},
}

var dataKeys = []Key{
	{Path: "data.train", Required: true, MinItems: 1, Template: true,
		Meaning: "Training data: local paths, globs (*, ?, [], {}, ** for directories at any depth), hdfs:// URIs. Files are read in the order given, those of a glob in byte order."},
	{Path: "data.eval", Template: true, Default: "[]",
		Meaning: "Held-out data, read after every epoch. Without it there is no evaluation."},
	{Path: "data.format", Required: true, Values: []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"},
		Meaning: "Format of the files. criteo: tab-separated label, 13 integers, 26 categories, without header."},
	{Path: "data.compression", Default: "auto", Values: []string{"auto", "none", "gzip", "zstd", "snappy", "bzip2"}, Tuning: true,
		When:    []When{{Path: "data.format", In: []string{"criteo", "csv", "tsv", "libsvm", "libffm"}}},
		Meaning: "How the files are compressed. auto: by their extension (.gz, .gzip, .zst, .zstd, .sz, .snappy, .bz2)."},
	{Path: "data.header", Default: "true", When: []When{{Path: "data.format", In: textFormats}},
		Meaning: "Whether the first line of each file names the columns. Without it, columns lists every column of the files in their order."},
	{Path: "data.delimiter", When: []When{{Path: "data.format", In: textFormats}}, Tuning: true,
		DefaultFrom: func(s scope) string {
			if s.job.Data.Format == "tsv" {
				return `"\t"`
			}
			return `","`
		}, DefaultNote: `"," for csv, tab for tsv`,
		Meaning: "The character between two cells; one byte."},
	{Path: "data.quoting", When: []When{{Path: "data.format", In: textFormats}}, Tuning: true, Values: []string{"rfc4180", "none"},
		DefaultFrom: func(s scope) string {
			if s.job.Data.Format == "tsv" {
				return "none"
			}
			return "rfc4180"
		}, DefaultNote: "rfc4180 for csv, none for tsv",
		Meaning: "What quotation marks mean. rfc4180: a cell that begins with one ends with one, on the same line, and \"\" within it is a quotation mark. none: they are characters like others, as in the text files of Hive."},
	{Path: "data.null_values", When: []When{{Path: "data.format", In: textFormats}}, Tuning: true,
		DefaultFrom: func(s scope) string {
			if s.job.Data.Format == "tsv" {
				return `['\N', ""]`
			}
			return `[""]`
		}, DefaultNote: `['\N', ""] for tsv, [""] for csv`,
		Meaning: "Cells that mean a missing value; an empty cell always does, also where it is not listed. Without a label the row is bad, without a weight it is 1; a dense column takes missing, a sparse one has no feature. They also count within a cell of several values."},
	{Path: "data.columns",
		DefaultFrom: defaultColumns, DefaultNote: "criteo brings its own; other formats: those of `generate`, if given; libsvm without it: one column `features` with every index; otherwise required",
		Meaning: "The schema. With a header (or Parquet), columns that are not listed are ignored. For csv, tsv and parquet a column that the files do not have can be a directory around them, such as dt=2026-11-20, as Hive writes it. criteo: names among label, I1 to I13 and C1 to C26 whose role, transforms or space differ from the usual."},
	{Path: "data.label",
		DefaultFrom: func(s scope) string {
			if f := s.job.Data.Format; f == "libsvm" || f == "libffm" {
				return "label"
			}
			for _, c := range s.job.Data.Columns {
				if c.Role == "label" {
					return yamlText(c.Name)
				}
			}
			return ""
		}, DefaultNote: "the column of role label; libsvm, libffm: label, the first number of a line",
		Meaning: "The label: a column of 0 and 1, or a column with a threshold, such as \"rating >= 4\" (>=, >, <=, <, ==, !=). libsvm and libffm call it label, and take -1 for 0."},
	{Path: "data.group_by", Default: `""`, Tuning: true,
		Meaning: "A column for group AUC: the AUC within each of its values, weighted by examples. One that is no feature is listed with role: ignore. Empty: none."},
	{Path: "data.limit", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Train on at most so many examples per epoch, the first ones. 0: all."},
	{Path: "data.shuffle_buffer", Default: "0", Range: "[0,1e8]", Tuning: true,
		Meaning: "Permute the examples within windows of so many, by the seed. Costs memory for as many examples. 0: keep the order of the files, which is what log data wants."},
	{Path: "data.negative_sampling", Default: "1", Range: "(0,1]", Tuning: true,
		Meaning: "Keep this share of the negative training examples, chosen by the seed; predictions are calibrated for it. 1: all."},
	{Path: "data.max_bad_rows", Default: "-1", Range: "[-1,inf)", Tuning: true,
		Meaning: "Stop when more rows than this are bad; lost rows count, too. -1: no such limit."},
	{Path: "data.max_bad_fraction", Default: "0.01", Range: "[0,1]", Tuning: true,
		Meaning: "Stop when more than this share of the rows is bad. The share is judged at the end of the data. Reading stops earlier only when the limit would be exceeded although all the rest were good: the rest is assumed to hold up to twice as many rows per byte as the densest part so far (16 times, where files differ in their compression). 1: never."},
	{Path: "data.max_lost_fraction", Default: "0.001", Range: "[0,1]", Tuning: true,
		Meaning: "Stop when more than this share of the stored bytes of the data is lost, because a file is damaged or its end is missing. How much is missing behind an end that comes too early is not known: as much is assumed as the file holds, and at least what it lacks to the average size of a file. 1: never."},
	{Path: "data.quarantine_rows", Default: "1000", Range: "[0,1e9]", Tuning: true,
		Meaning: "So many bad rows are written to the quarantine file in the model directory, with place and reason."},
	{Path: "data.max_line_bytes", Default: "1MiB", Range: "[64,1073741824]", Tuning: true,
		When:    []When{{Path: "data.format", In: []string{"criteo", "csv", "tsv", "libsvm", "libffm"}}},
		Meaning: "A longer line is a bad row."},

	{Path: "data.hdfs", Meaning: "The HDFS client. Name services, security and the rest come from core-site.xml and hdfs-site.xml.", Tuning: true},
	{Path: "data.hdfs.conf_dir", Default: `""`, Template: true, Meaning: "Directory of core-site.xml and hdfs-site.xml. Empty: $HADOOP_CONF_DIR, then $HADOOP_HOME/etc/hadoop, then /etc/hadoop/conf."},
	{Path: "data.hdfs.user", Default: `""`, Template: true, Meaning: "User without Kerberos. Empty: $HADOOP_USER_NAME, then the user of the process."},
	{Path: "data.hdfs.kerberos_principal", Default: `""`, Template: true, Meaning: "Principal of the keytab, such as etl@EXAMPLE.COM."},
	{Path: "data.hdfs.kerberos_keytab", Default: `""`, Template: true, Meaning: "Keytab to log in with; tickets are renewed from it during the job."},
	{Path: "data.hdfs.kerberos_ccache", Default: `""`, Template: true, Meaning: "Ticket cache to log in with, where there is no keytab. Empty: $KRB5CCNAME, then /tmp/krb5cc_UID."},
	{Path: "data.hdfs.krb5_conf", Default: `""`, Template: true, Meaning: "Kerberos configuration. Empty: $KRB5_CONFIG, then /etc/krb5.conf."},
	{Path: "data.hdfs.timeout_ms", Default: "10000", Range: "[1,3600000]", Meaning: "Time limit of one network operation, in milliseconds."},
	{Path: "data.hdfs.retry_ms", Default: "30000", Range: "[0,86400000]", Meaning: "Total time spent on retries of one operation, with growing pauses, in milliseconds, also while the cluster has never answered. 0: no retries; another NameNode or another replica is still tried."},
	{Path: "data.hdfs.allow_missing_checksums", Default: "false", Meaning: "Read a replica whose checksums are lost (its .meta file is missing) unverified and with a warning, where no other replica can be read. Otherwise that is an error."},
}

var columnKeys = []Key{
	{Path: "data.columns[].name", Required: true, Meaning: "Name of the column: as in the header, or as you like where there is none."},
	{Path: "data.columns[].role", Values: []string{"label", "dense", "sparse", "weight", "ignore"},
		DefaultFrom: func(s scope) string {
			return defaultRole(s.job.Data.Format, s.parent.Addr().Interface().(*Column).Name)
		},
		DefaultNote: "sparse; criteo: as the format says",
		Meaning:     "label: what is predicted; dense: a number; sparse: one or several categories with embeddings; weight: weight of the example; ignore."},
	{Path: "data.columns[].missing", Default: "0", Range: "(-inf,inf)", When: []When{{Path: ".role", In: []string{"dense"}}, {Only: usesMissing, Note: "no bucketize"}},
		Meaning: "Value of the feature where the cell is empty; transforms do not apply to it. Empty sparse and bucketized cells give no feature."},
	{Path: "data.columns[].transform", When: []When{{Path: ".role", In: []string{"dense"}}},
		DefaultFrom: func(s scope) string {
			if s.job.Data.Format == "criteo" {
				return "[log1p]"
			}
			return "[]"
		}, DefaultNote: "[]; criteo: [log1p]",
		Meaning: "Steps on a number, in order: log1p, standardize, clip, bucketize; a bare name or a mapping with its options."},
	{Path: "data.columns[].transform[].log1p", Meaning: "sign(x) log(1 + |x|)."},
	{Path: "data.columns[].transform[].standardize", Meaning: "(x - mean) / std."},
	{Path: "data.columns[].transform[].standardize.mean", Range: "(-inf,inf)", Meaning: "Mean. Without mean and std both are computed by a first scan of the training data and stored with the model."},
	{Path: "data.columns[].transform[].standardize.std", Range: "[0,inf)", Meaning: "Standard deviation; 0 counts as 1."},
	{Path: "data.columns[].transform[].clip", Meaning: "Limit x to [min, max]; one of the two may be left out."},
	{Path: "data.columns[].transform[].clip.min", Range: "(-inf,inf)", Meaning: "Smallest value."},
	{Path: "data.columns[].transform[].clip.max", Range: "(-inf,inf)", Meaning: "Largest value."},
	{Path: "data.columns[].transform[].bucketize", Meaning: "Turn the number into a sparse feature: the number of boundaries at or below it. Must be the last step."},
	{Path: "data.columns[].transform[].bucketize.boundaries", Required: true, MinItems: 1, Range: "(-inf,inf)", Meaning: "Ascending boundaries."},
	{Path: "data.columns[].separator", Default: `""`, When: []When{{Path: ".role", In: []string{"sparse"}}, {Path: "data.format", In: tableFormats}},
		Meaning: "Splits a cell into several values, such as \"|\". Empty: one value per cell. Parquet lists need none."},
	{Path: "data.columns[].weight_separator", Default: `""`, When: []When{{Path: ".role", In: []string{"sparse"}}, {Path: "data.format", In: tableFormats}},
		Meaning: "Splits a weight off each value: with \":\", action:0.5 is the value action with weight 0.5. Empty: no weights."},
	{Path: "data.columns[].space", When: []When{{Only: usesSpace, Note: "role sparse, or dense with bucketize"}},
		DefaultFrom: func(s scope) string { return yamlText(s.parent.Addr().Interface().(*Column).Name) }, DefaultNote: "the column's name",
		Meaning: "Embedding space. Columns that name the same space share the embeddings of equal values."},
	{Path: "data.columns[].range", When: []When{{Path: "data.format", In: []string{"libsvm"}}}, Range: "[0,inf)",
		DefaultFrom: func(s scope) string {
			if len(s.job.Data.Columns) == 1 && s.job.Data.Columns[0].Role == "sparse" {
				return everyIndex
			}
			return ""
		}, DefaultNote: "every index, where there is a single sparse column",
		Meaning: "LibSVM: first and last feature index of the column. A dense column has one index, such as [7, 7]. Values of sparse columns are weights."},
	{Path: "data.columns[].field", When: []When{{Path: "data.format", In: []string{"libffm"}}}, Range: "[0,1e6]",
		Meaning: "LibFFM: the field number. Fields that no column names are ignored."},
	{Path: "data.columns[].group", Default: `""`, When: []When{{Path: ".role", In: []string{"dense"}}},
		Meaning: "A kind of dense features; towers of the aibox model choose by it."},
}

// everyIndex is the range of all LibSVM feature indices.
const everyIndex = "[0, 9223372036854775807]"

// usesMissing is the condition of data.columns[].missing.
func usesMissing(s scope) string {
	if s.parent.Addr().Interface().(*Column).Bucketized() {
		return "an empty cell of a bucketized column gives no feature"
	}
	return ""
}

// usesSpace is the condition of data.columns[].space.
func usesSpace(s scope) string {
	c := s.parent.Addr().Interface().(*Column)
	if c.Role == "sparse" || c.Role == "" || c.Bucketized() {
		return ""
	}
	return "a column of role " + c.Role + " has no embeddings"
}

// yamlText writes s as a YAML scalar that is read back as the same text.
func yamlText(s string) string {
	if isPlain(s) {
		return s
	}
	return strconv.Quote(s)
}
