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

var tableKeys = []Key{
	{Path: "sparse_table.kind", Default: "memory", Values: []string{"memory", "ssd"}, Tuning: true,
		Meaning: "memory: all rows in memory. ssd: rows in files of the model directory, those in use in memory."},
	{Path: "sparse_table.cache_policy", Default: "lookahead", Values: []string{"lookahead", "history", "lru_lfu"}, Tuning: true,
		Meaning: "Of kind ssd: which rows stay in memory. lookahead: those that the next passes need, then the most used; history, lru_lfu: the most used, with and without what was counted before they last left."},
	{Path: "sparse_table.memory_bytes", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Hard limit of the memory for rows, index and pinned working sets. 0: none, for kind ssd 256 MiB."},
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
		Meaning: "Passes that may wait between reading and the table."},
	{Path: "pipeline.pull_queue", Default: "2", Range: "[1,1024]",
		Meaning: "Passes that may wait between the table and training; their rows are pinned."},
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
