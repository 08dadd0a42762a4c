package configs

var trainingKeys = []Key{
	{Path: "training.batch_size", Default: "512", Range: "[1,1048576]",
		Meaning: "Examples per mini-batch, that is per optimizer step. Small data wants 64 to 512, logs of many millions 1024 to 8192."},
	{Path: "training.epochs", Default: "1", Range: "[1,1000000]",
		Meaning: "How often the training data are read. Models with large embedding tables overfit from the second time on."},
	{Path: "training.early_stopping", Tuning: true,
		Meaning: "Ends training when the evaluation no longer improves, and keeps the best epoch."},
	{Path: "training.early_stopping.metric", Default: "auc", Values: []string{"auc", "log_loss"}, Meaning: "What must improve."},
	{Path: "training.early_stopping.patience", Default: "2", Range: "[1,1000000]", Meaning: "Epochs without improvement before training ends."},
	{Path: "training.early_stopping.min_delta", Default: "0", Range: "[0,1]", Meaning: "Smaller improvements do not count."},
	{Path: "training.max_examples", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Stop after so many examples, all epochs together. 0: no limit."},
	{Path: "training.warm_start", Default: `""`, Template: true, Tuning: true,
		Meaning: "Directory of an earlier model to start from. Fields and towers may have been added since. Empty: a new model."},
}

// onSSD is the condition of keys that tables in memory do not use.
var onSSD = []When{{Path: "sparse_table.kind", In: []string{"ssd"}}}

// lookingAhead is the condition of keys that only the policy lookahead uses.
var lookingAhead = []When{onSSD[0], {Path: "sparse_table.cache_policy", In: []string{"lookahead"}}}

var tableKeys = []Key{
	{Path: "sparse_table.kind", Default: "memory", Values: []string{"memory", "ssd"}, Tuning: true,
		Meaning: "memory: all rows in memory. ssd: rows in files, those in use in memory; then there are further keys: dirs, cache_policy, lookahead_passes, dir_budget_bytes, max_space_amplification, hot_bytes, direct_io, queue_depth."},
	{Path: "sparse_table.memory_bytes", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Hard limit of the memory for rows, index and pinned working sets. 0: none, for kind ssd 256 MiB."},
	{Path: "sparse_table.dirs", Template: true, Tuning: true, When: onSSD,
		DefaultNote: "the model directory", DefaultFrom: func(scope) string { return "[]" },
		Meaning: "Directories for the table's files, one per SSD: rows are spread over them, and read from all at once. Each training run makes a directory of its own in each; those of a model that was replaced are deleted. They belong to the model, which cannot be used without them."},
	{Path: "sparse_table.cache_policy", Default: "lookahead", Values: []string{"lookahead", "history", "lru_lfu"}, Tuning: true, When: onSSD,
		Meaning: "Which rows stay in memory. lookahead: those that the next passes need, then the most used; history, lru_lfu: the most used, with and without what was counted before they last left."},
	{Path: "sparse_table.lookahead_passes", Default: "0", Range: "[0,100000]", Tuning: true,
		When:    lookingAhead,
		Meaning: "How many passes ahead the policy lookahead looks. 0: as many as an eighth of the cache can describe, 50 at most, or 100 where that leaves room to note what is missing. Fewer where the rows that they need do not fit the cache, or pipeline.read_ahead_bytes holds fewer."},
	{Path: "sparse_table.dir_budget_bytes", Default: "0", Range: "[0,inf)", Tuning: true, When: onSSD,
		Meaning: "Hard limit of what the table's rows take in each directory, snapshots included; its catalog is beside it. 0: what the file system has."},
	{Path: "sparse_table.max_space_amplification", Default: "2", Range: "[1.1,1000]", Tuning: true, When: onSSD,
		Meaning: "Bytes on disk per byte in use, beyond which files are compacted. Lower takes less space, higher writes less."},
	{Path: "sparse_table.hot_bytes", Default: "0", Range: "[-1,inf)", Tuning: true, When: onSSD,
		Meaning: "How many bytes of often used rows each snapshot saves in addition, so that the next run starts with them in memory. They are rows that are in memory and have not changed since they were written to a file. 0 means a quarter of memory_bytes, but at most 1GiB; -1 means none. When the disk has less than 256MiB left, none are saved."},
	{Path: "sparse_table.direct_io", Default: "auto", Values: []string{"auto", "on", "off"}, Tuning: true, When: onSSD,
		Meaning: "Whether reads and writes of the table bypass the page cache of the operating system. With auto they do so where the file system supports it; with on, the job fails where it does not; with off, they go through the page cache, which then takes memory beside memory_bytes."},
	{Path: "sparse_table.queue_depth", Default: "0", Range: "[0,4096]", Tuning: true, When: onSSD,
		Meaning: "Reads that a directory's device is given at once. 0: 256."},
	{Path: "sparse_table.value_format", Default: "float32", Values: []string{"float32", "float16", "bfloat16"}, Tuning: true,
		Meaning: "How embeddings are kept. float16, bfloat16: in half the space, rounded at random but reproducibly, so that small updates are not lost; the state of the row optimizer stays float32."},
	{Path: "sparse_table.init_stddev", Default: "0.01", Range: "[0,10]",
		Meaning: "Standard deviation of the embeddings of new rows, which are a function of seed and key."},
	{Path: "sparse_table.show_decay", Default: "0.98", Range: "(0,1]", Tuning: true,
		Meaning: "Factor per day on the show and click statistics of a row."},
	{Path: "sparse_table.admission", Meaning: "Which features get an embedding.", Tuning: true},
	{Path: "sparse_table.admission.min_occurrences", Default: "1", Range: "[1,4294967295]",
		Meaning: "An embedding is trained from the feature's n-th occurrence on. 1: from the first."},
	{Path: "sparse_table.expiry", Meaning: "Which rows are dropped at the end of the job.", Tuning: true},
	{Path: "sparse_table.expiry.unseen_days", Default: "0", Range: "[0,100000]",
		Meaning: "Drop rows that were not trained for so many days. 0: keep them."},
	{Path: "sparse_table.expiry.min_show", Default: "0", Range: "[0,1e9]",
		Meaning: "Drop rows whose decayed number of impressions is below this. 0: keep them."},
}

var runKeys = []Key{
	{Path: "pipeline.batches_per_pass", Default: "16", Range: "[1,65536]",
		Meaning: "Mini-batches per pass, the unit in which rows are pulled and pinned."},
	{Path: "pipeline.read_queue", Default: "2", Range: "[1,1024]",
		Meaning: "Passes that may wait between reading and the table; more where the table looks ahead, see read_ahead_bytes."},
	{Path: "pipeline.read_ahead_bytes", Default: "256MiB", Range: "[0,inf)", Tuning: true, When: lookingAhead,
		Meaning: "Memory for passes that wait between reading and the table, so that it knows what the next ones will need. It bounds how far the table looks ahead, but read_queue passes wait however large they are. 0: no more than those."},
	{Path: "pipeline.pull_queue", Default: "2", Range: "[1,1024]",
		Meaning: "Passes that may wait between the table and training; their rows are pinned. Fewer wait where sparse_table.memory_bytes does not hold them."},
	{Path: "pipeline.reader_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that decode. 0: one per core."},
	{Path: "pipeline.compute_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that compute. 0: one per core."},
	{Path: "pipeline.chunk_bytes", Default: "4MiB", Range: "[4096,134217728]",
		Meaning: "Byte range of a file that one reader thread takes at a time."},

	{Path: "output.model_dir", Required: true, Template: true,
		Meaning: "Directory that the model, metrics and summary are written to; a local path."},
	{Path: "output.metrics", Template: true, Tuning: true,
		DefaultFrom: func(s scope) string { return yamlText(inModelDir(s.job, "metrics.jsonl")) }, DefaultNote: "metrics.jsonl in model_dir",
		Meaning: "Metrics as JSON lines."},
	{Path: "output.tensorboard", Template: true, Tuning: true,
		DefaultFrom: func(s scope) string { return yamlText(inModelDir(s.job, "tensorboard")) }, DefaultNote: "tensorboard in model_dir",
		Meaning: "Directory of TensorBoard event files. none: do not write them."},
	{Path: "output.log_every", Default: "100", Range: "[1,inf)", Tuning: true,
		Meaning: "Mini-batches between two lines of metrics."},
}

func inModelDir(j *Job, file string) string {
	if j.Output.ModelDir == "" {
		return file
	}
	if last := j.Output.ModelDir[len(j.Output.ModelDir)-1]; last == '/' {
		return j.Output.ModelDir + file
	}
	return j.Output.ModelDir + "/" + file
}

var generateKeys = []Key{
	{Path: "generate.fields", Required: true, MinItems: 1, Meaning: "Sparse fields."},
	{Path: "generate.fields[].name", Required: true, Meaning: "Name of the field; with repeat above 1 a number from 1 on is appended."},
	{Path: "generate.fields[].cardinality", Required: true, Range: "[1,4503599627370496]", Meaning: "Number of different values, up to 1e9 and more."},
	{Path: "generate.fields[].skew", Default: "1.05", Range: "[0,10]", Meaning: "Exponent of the power law of popularity (Zipf). 0: all values are equally frequent."},
	{Path: "generate.fields[].repeat", Default: "1", Range: "[1,10000]", Meaning: "So many independent fields like this one."},
	{Path: "generate.fields[].max_values", Default: "1", Range: "[1,1000]", Meaning: "Multi-valued: 1 to max_values values per example."},
	{Path: "generate.dense_columns", Default: "0", Range: "[0,10000]", Meaning: "Number of dense columns."},
	{Path: "generate.base_rate", Default: "0.1", Range: "(0,1)", Meaning: "Share of positive examples."},
	{Path: "generate.linear_strength", Default: "1", Range: "[0,100]", Meaning: "Standard deviation of the linear part of the true logit."},
	{Path: "generate.interaction_strength", Range: "[0,100]",
		DefaultFrom: func(s scope) string {
			if variedFields(s.job.Generate) < 2 {
				return "0"
			}
			return "0.5"
		}, DefaultNote: "0.5; 0 where there are not two fields of more than one value", Meaning: "Standard deviation of the pairwise part of the true logit."},
	{Path: "generate.latent_dim", Default: "4", Range: "[1,1024]", Meaning: "Dimension of the latent vectors behind the pairwise part."},
	{Path: "generate.drift_per_day", Default: "0", Range: "[0,1]", Meaning: "Share of a feature's effect that changes per day: over `days`, or from one `aibox generate --day` to the next."},
	{Path: "generate.days", Default: "1", Range: "[1,100000]", Meaning: "Days that the examples are spread over."},
	{Path: "generate.train_examples", Default: "1000000", Range: "[0,1e15]", Meaning: "Examples drawn for data.train, over all days."},
	{Path: "generate.eval_examples", Default: "100000", Range: "[0,1e15]", Meaning: "Examples drawn for data.eval, of the last day."},
	{Path: "generate.missing_rate", Default: "0", Range: "[0,1)", Meaning: "Share of empty cells."},
}

// variedFields counts the fields of more than one value: interactions need two.
func variedFields(g *Generate) int {
	n := 0
	for _, f := range g.Fields {
		if f.Cardinality > 1 {
			n += max(1, f.Repeat)
		}
	}
	return n
}
