package configs

import (
	"path/filepath"
	"strings"

	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
)

var (
	textFormats  = []string{"csv", "tsv"}
	tableFormats = []string{"csv", "tsv", "parquet"}
)

var topKeys = []Key{
	{Path: "name", Meaning: "The name of the job in logs and summaries.", Template: true, Surroundings: true, EmptyIsDefault: true,
		DefaultFrom: func(s schema.Scope) string {
			return yamltree.Text(strings.TrimSuffix(filepath.Base(jobOf(s).file), filepath.Ext(jobOf(s).file)))
		}, DefaultNote: "the job file's name without its ending"},
	{Path: "seed", Meaning: "Every random choice (new rows, weights, shuffling, dropout, sampling) is a function of this number.", Default: "1"},
	{Path: "timezone", Tuning: true, Surroundings: true,
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(jobOf(s).zone) }, DefaultNote: "the system's",
		Meaning: "The time zone of the job's date, such as UTC or Asia/Shanghai. It applies to {{date}}, --date and the age of rows."},
	{Path: "data", Meaning: "Where the examples are and how to read them."},
	{Path: "model", Meaning: "The network."},
	{Path: "optimizer", Meaning: "How parameters are updated. The dense network and the embedding rows have separate optimizers."},
	{Path: "training", Meaning: "How long to train, and with which mini-batches."},
	{Path: "sparse_table", Meaning: "The embedding table."},
	{Path: "engine", Tuning: true, Meaning: "How the network is computed."},
	{Path: "pipeline", Meaning: "Sizes of the three pipeline stages. None of these keys affects the model."},
	{Path: "output", Meaning: "What is written, and where."},
	{Path: "generate", Apart: true, Meaning: "The known model that `aibox generate` draws examples from. Training uses it only as the default of data.columns, for every format but criteo."},
}

var dataKeys = []Key{
	{Path: "data.train", Required: true, MinItems: 1, Template: true,
		Meaning: "Training data: local paths, globs (*, ?, [], {}, and ** for directories at any depth) and hdfs:// URIs. They are read in the order given, and the files of a glob in byte order of their names. A file of 0 bytes counts as empty. If it is a compressed file, the log warns, because a compressor writes some bytes even for empty input, so the file may be truncated."},
	{Path: "data.eval", Template: true, Default: "[]",
		Meaning: "Held-out data, read after every epoch. Without them there is no evaluation."},
	{Path: "data.validation_fraction", Default: "0", Range: "[0,0.5]",
		Meaning: "Hold out this share of the training data, taken from their end. After every epoch the model is evaluated on it, and early stopping uses the result, so that data.eval do not select the epoch. The data should be in time order. The rows are counted before training, which takes an additional pass over the data. 0 holds nothing out."},
	{Path: "data.format", Required: true, Values: []string{"criteo", "csv", "tsv", "libsvm", "libffm", "parquet"},
		Meaning: "Format of the files. criteo is tab-separated text without a header: a label, 13 integers and 26 categories."},
	{Path: "data.compression", Default: "auto", Values: []string{"auto", "none", "gzip", "zstd", "snappy", "bzip2", "deflate"}, Tuning: true,
		When:    []schema.When{{Path: "data.format", In: []string{"criteo", "csv", "tsv", "libsvm", "libffm"}}},
		Meaning: "How the files are compressed. auto decides by each file's extension (.gz, .gzip, .zst, .zstd, .sz, .snappy, .bz2, and .deflate, which Hadoop's default codec writes)."},
	{Path: "data.header", Default: "true", When: []schema.When{{Path: "data.format", In: textFormats}},
		Meaning: "Whether the first line of each file names the columns. If not, data.columns must list every column of the files in order."},
	{Path: "data.delimiter", When: []schema.When{{Path: "data.format", In: textFormats}}, Tuning: true,
		DefaultFrom: func(s schema.Scope) string {
			if jobOf(s).Data.Format == "tsv" {
				return `"\t"`
			}
			return `","`
		}, DefaultNote: `"," for csv, tab for tsv`,
		Meaning: "The one-byte character between two cells."},
	{Path: "data.quoting", When: []schema.When{{Path: "data.format", In: textFormats}}, Tuning: true, Values: []string{"rfc4180", "none"},
		DefaultFrom: func(s schema.Scope) string {
			if jobOf(s).Data.Format == "tsv" {
				return "none"
			}
			return "rfc4180"
		}, DefaultNote: "rfc4180 for csv, none for tsv",
		Meaning: "How quotation marks are interpreted. With rfc4180, a cell that begins with a quotation mark ends with one on the same line, and \"\" within it stands for one quotation mark. With none, quotation marks are ordinary characters, as in Hive's text files."},
	{Path: "data.null_values", When: []schema.When{{Path: "data.format", In: textFormats}}, Tuning: true, NullIsText: true,
		DefaultFrom: func(s schema.Scope) string {
			if jobOf(s).Data.Format == "tsv" {
				return `['\N', ""]`
			}
			return `[""]`
		}, DefaultNote: `['\N', ""] for tsv, [""] for csv`,
		Meaning: "Cells that mean a missing value. An empty cell always does, even if not listed here. A row without a label is bad, and a row without a weight has weight 1. A missing dense cell gets the value of the column's key missing, and a missing sparse cell gives no feature. In a cell of several values, each value is compared as well."},
	{Path: "data.columns",
		Example:     "{name: C1, role: ignore}", // criteo needs no columns
		DefaultFrom: defaultColumns, DefaultNote: "criteo: those of the format; other formats: those of the section `generate`, if there is one; libsvm without it: one column `features` with every index; otherwise required",
		Meaning: "The schema. With a header, and in Parquet, columns of the files that are not listed are ignored. In csv, tsv and parquet, a column that is not in the files may be a partition directory, as Hive writes it, such as dt=2026-11-20. With criteo, list only the columns (label, I1 to I13, C1 to C26) whose role, transforms or space differ from the format's own."},
	{Path: "data.label",
		DefaultFrom: func(s schema.Scope) string {
			if f := jobOf(s).Data.Format; f == "libsvm" || f == "libffm" {
				return "label"
			}
			for _, c := range jobOf(s).Data.Columns {
				if c.Role == "label" {
					return yamltree.Text(c.Name)
				}
			}
			return ""
		}, DefaultNote: "the column of role label; libsvm, libffm: label, the first number of a line",
		Meaning: "The label: a column of 0 and 1, or false and true, or a column compared with a threshold, such as \"rating >= 4\" (>=, >, <=, <, ==, !=). In libsvm and libffm the column is called label, and -1 counts as 0."},
	{Path: "data.group_by", Default: `""`, Tuning: true,
		Meaning: "The column whose values form the groups of the group AUC: the AUC within each group that has both labels, averaged over the groups by the total weight of their examples. Examples whose cell is missing form one group. A column that is not a feature must be listed with role: ignore. Empty means no group AUC."},
	{Path: "data.limit", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Train on at most the first this many examples per epoch. 0 means all."},
	{Path: "data.shuffle_buffer", Default: "0", Range: "[0,1e8]", Tuning: true,
		Meaning: "Shuffle the examples within windows of this many, as the seed determines. One window is held in memory. 0 keeps the order of the files, which is best for logs."},
	{Path: "data.negative_sampling", Default: "1", Range: "(0,1]", Tuning: true,
		Meaning: "Keep this share of the negative training examples, as the seed determines. Predictions are calibrated for it, even after a warm start from a model that used another share. 1 keeps all."},
	{Path: "data.max_bad_rows", Default: "-1", Range: "[-1,inf)", Tuning: true,
		Meaning: "Stop when more than this many rows are bad, lost rows included. -1 means no limit."},
	{Path: "data.max_bad_fraction", Default: "0.01", Range: "[0,1]", Tuning: true,
		Meaning: "Stop when more than this share of the rows is bad. The share is checked at the end of the data. Reading stops earlier only if the limit would be exceeded even if all remaining rows were good. For this, the remaining data are assumed to hold at most twice as many rows per byte as the densest part so far (16 times as many if the files are compressed in different ways). 1 means that it never stops."},
	{Path: "data.max_lost_fraction", Default: "0.001", Range: "[0,1]", Tuning: true,
		Meaning: "Stop when more than this share of the stored bytes is lost, because a file is damaged or truncated. The amount missing at the end of a truncated file is not known. It is assumed to be the size of the file or, if larger, the difference between the average file's size and this one's. 1 means that it never stops."},
	{Path: "data.quarantine_rows", Default: "1000", Range: "[0,1e9]", Tuning: true,
		Meaning: "At most this many bad rows are written to the quarantine file in the model directory, each with its position and the reason. Only the file's owner can read it. The log and error messages quote at most 60 bytes of a cell. With 0 they quote no text of rows either, for data that must not appear there."},
	{Path: "data.max_line_bytes", Default: "1MiB", Range: "[64,134217728]", Tuning: true,
		When:    []schema.When{{Path: "data.format", In: []string{"criteo", "csv", "tsv", "libsvm", "libffm"}}},
		Meaning: "A longer line is a bad row. If a line is more than twice as long, for example because of a hole of zeros in the file, its bytes also count as lost data (see max_lost_fraction)."},

	{Path: "data.hdfs", Meaning: "The HDFS client. Name services, security and other settings come from core-site.xml and hdfs-site.xml.", Tuning: true},
	{Path: "data.hdfs.conf_dir", Default: `""`, Template: true, Meaning: "Directory of core-site.xml and hdfs-site.xml. Empty means $HADOOP_CONF_DIR, otherwise $HADOOP_HOME/etc/hadoop, otherwise /etc/hadoop/conf."},
	{Path: "data.hdfs.user", Default: `""`, Template: true, Meaning: "User name without Kerberos. Empty means $HADOOP_USER_NAME, otherwise the user of the process."},
	{Path: "data.hdfs.kerberos_principal", Default: `""`, Template: true, Meaning: "Principal for the keytab login, such as etl@EXAMPLE.COM."},
	{Path: "data.hdfs.kerberos_keytab", Default: `""`, Template: true, Meaning: "Keytab to log in with. Tickets are renewed from it during the job."},
	{Path: "data.hdfs.kerberos_ccache", Default: `""`, Template: true, Meaning: "Ticket cache to log in with if there is no keytab. Empty means $KRB5CCNAME, otherwise the one that krb5.conf names, otherwise /tmp/krb5cc_UID."},
	{Path: "data.hdfs.krb5_conf", Default: `""`, Template: true, Meaning: "Kerberos configuration file. Empty means $KRB5_CONFIG, otherwise /etc/krb5.conf."},
	{Path: "data.hdfs.timeout_ms", Default: "10000", Range: "[1,3600000]", Meaning: "Time limit of one network operation, in milliseconds."},
	{Path: "data.hdfs.retry_ms", Default: "30000", Range: "[0,86400000]", Meaning: "Total time for retries of one operation, in milliseconds, with growing pauses between them. It applies even if the cluster has never answered. With 0 nothing is retried, but another NameNode or another replica is still tried."},
	{Path: "data.hdfs.allow_missing_checksums", Default: "false", Meaning: "Whether to read a replica that has lost its checksums (its .meta file) without verification, and with a warning, if no other replica can be read. Otherwise this is an error."},
}

var columnKeys = []Key{
	{Path: "data.columns[].name", Required: true, Meaning: "Name of the column in the header, or any name if there is no header."},
	{Path: "data.columns[].role", Values: []string{"label", "dense", "sparse", "weight", "ignore"},
		DefaultFrom: func(s schema.Scope) string {
			return defaultRole(jobOf(s).Data.Format, columnOf(s).Name)
		},
		DefaultNote: "sparse; criteo: the role that the format gives it", DefaultNeeds: "data.format",
		Meaning: "label is what is predicted; dense is a number; sparse is one or several categories, which have embeddings; weight is the weight of the example; ignore leaves the column out."},
	{Path: "data.columns[].missing", Values: []string{MissingIndicator}, Range: "(-inf,inf)",
		DefaultFrom: defaultMissing, DefaultNote: "indicator; libsvm, libffm: 0",
		When:    []schema.When{{Path: ".role", In: []string{"dense"}}, {Only: usesMissing, Note: "no bucketize"}},
		Meaning: "Value of the feature if the cell is empty. Transforms are not applied to it. With indicator the value is 0, and an additional dense feature, NAME.missing, is 1 for empty cells and 0 for others, so that the model can tell a missing value from 0. In libsvm and libffm, a feature that a line does not list is usually 0, not missing. Empty cells of sparse and bucketized columns give no feature."},
	{Path: "data.columns[].transform", When: []schema.When{{Path: ".role", In: []string{"dense"}}},
		DefaultFrom: func(s schema.Scope) string {
			if jobOf(s).Data.Format == "criteo" {
				return "[log1p]"
			}
			return "[]"
		}, DefaultNote: "[]; criteo: [log1p]",
		Meaning: "Transforms of the number, in order: log1p, standardize, clip, bucketize. Each is either a bare name or a mapping with its options."},
	{Path: "data.columns[].transform[].log1p", Meaning: "sign(x) log(1 + |x|)."},
	{Path: "data.columns[].transform[].standardize", Meaning: "(x - mean) / std."},
	{Path: "data.columns[].transform[].standardize.mean", Range: "(-inf,inf)", Meaning: "Mean. If neither mean nor std is given, both are computed in a first scan of the training data, which skips numbers outside the range of float32, and are stored with the model. A warm start keeps the values that the earlier model computed if the preceding transforms are of the same kinds."},
	{Path: "data.columns[].transform[].standardize.std", Range: "[0,inf)", Meaning: "Standard deviation. 0 counts as 1."},
	{Path: "data.columns[].transform[].clip", Meaning: "Limit x to [min, max]. Either may be left out."},
	{Path: "data.columns[].transform[].clip.min", Range: "(-inf,inf)", Meaning: "Smallest value."},
	{Path: "data.columns[].transform[].clip.max", Range: "(-inf,inf)", Meaning: "Largest value."},
	{Path: "data.columns[].transform[].bucketize", Meaning: "Turn the number into a sparse feature: the number of boundaries less than or equal to it. It must be the last transform."},
	{Path: "data.columns[].transform[].bucketize.boundaries", Required: true, MinItems: 1, Range: "(-inf,inf)", Meaning: "The boundaries, in ascending order."},
	{Path: "data.columns[].separator", Default: `""`, When: []schema.When{{Path: ".role", In: []string{"sparse"}}, {Path: "data.format", In: tableFormats}},
		Meaning: "Text that separates several values in a cell, such as \"|\". Empty means one value per cell. Parquet lists need no separator."},
	{Path: "data.columns[].weight_separator", Default: `""`, When: []schema.When{{Path: ".role", In: []string{"sparse"}}, {Path: "data.format", In: tableFormats}},
		Meaning: "Text between a value and its weight: with \":\", action:0.5 is the value action with weight 0.5. Empty means no weights."},
	{Path: "data.columns[].space", EmptyIsDefault: true, When: []schema.When{{Only: usesSpace, Needs: ".transform", Note: "role sparse, or dense with bucketize"}},
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(columnOf(s).Name) }, DefaultNote: "the column's name",
		Meaning: "Embedding space. Equal values in columns of the same space share one embedding."},
	{Path: "data.columns[].pooling", Values: []string{"sum", "mean"}, DefaultNote: "that of model.pooling", When: []schema.When{{Path: ".role", In: []string{"sparse"}}},
		Meaning: "How the embeddings of several values in a cell are combined into one: sum or mean."},
	{Path: "data.columns[].range", When: []schema.When{{Path: "data.format", In: []string{"libsvm"}}}, Range: "[0,inf)",
		DefaultFrom: func(s schema.Scope) string {
			if len(jobOf(s).Data.Columns) == 1 && jobOf(s).Data.Columns[0].Role == "sparse" {
				return everyIndex
			}
			return ""
		}, DefaultNote: "every index, where there is a single sparse column",
		Meaning: "LibSVM: the first and the last feature index of the column. A dense column has a single index, such as [7, 7]. The values of a sparse column are weights."},
	{Path: "data.columns[].field", When: []schema.When{{Path: "data.format", In: []string{"libffm"}}}, Range: "[0,1e6]",
		Meaning: "LibFFM: the field number. Fields that belong to no column are ignored."},
	{Path: "data.columns[].group", Default: `""`, When: []schema.When{{Path: ".role", In: []string{"dense"}}},
		Meaning: "Name of the group of dense features that the column belongs to. A tower of the aibox model can take the whole group by this name."},
}

// everyIndex is the range of all LibSVM feature indices.
const everyIndex = "[0, 9223372036854775807]"

// MissingIndicator as data.columns[].missing gives a column an indicator.
const MissingIndicator = "indicator"

// defaultMissing is the default of data.columns[].missing. A column has an indicator if its format
// has empty cells, even if the data happen to have none: this keeps the model's structure the same
// for every night's data, and a feature that is always 0 does no harm. It has none if the data have
// a column of that name.
func defaultMissing(s schema.Scope) string {
	if f := jobOf(s).Data.Format; f == "libsvm" || f == "libffm" || jobOf(s).indicated(columnOf(s)) {
		return "0"
	}
	return MissingIndicator
}

// usesMissing is the condition of data.columns[].missing.
func usesMissing(s schema.Scope) string {
	if columnOf(s).Bucketized() {
		return "an empty cell of a bucketized column gives no feature"
	}
	return ""
}

// usesSpace is the condition of data.columns[].space.
func usesSpace(s schema.Scope) string {
	c := columnOf(s)
	if c.Role == "sparse" || c.Role == "" || c.Bucketized() {
		return ""
	}
	return "a column of role " + c.Role + " has no embeddings"
}
