package configs

import (
	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
)

var trainingKeys = []Key{
	{Path: "training.batch_size", Default: "512", Range: "[1,1048576]",
		Meaning: "Examples per mini-batch, that is, per optimizer step. 64 to 512 suits small data sets, 1024 to 8192 logs of many millions of rows."},
	{Path: "training.epochs", Default: "1", Range: "[1,1000000]",
		Meaning: "How many times the training data are read. Models with large embedding tables overfit from the second epoch on."},
	{Path: "training.early_stopping", Tuning: true,
		Meaning: "Ends training when the evaluation stops improving, and keeps the best epoch."},
	{Path: "training.early_stopping.metric", Default: "auc", Values: []string{"auc", "log_loss"}, Meaning: "The metric that must improve."},
	{Path: "training.early_stopping.patience", Default: "2", Range: "[1,1000000]", Meaning: "Training ends after this many epochs without improvement."},
	{Path: "training.early_stopping.min_delta", Default: "0", Range: "[0,1]", Meaning: "Smaller improvements do not count."},
	{Path: "training.max_examples", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Stop after this many examples, summed over all epochs. 0 means no limit."},
	{Path: "training.accept_diverged", Default: "false", Tuning: true,
		Meaning: "Whether to commit a model that has diverged. A model has diverged if its log loss exceeds the entropy of the labels by more than chance, so that predicting the share of the positives would be better. The log loss is that on the data held out by data.validation_fraction, otherwise on data.eval. If there are no such data, or all of them have the same label, it is that of the last training examples before they are trained on, provided that the run took at least 100 optimizer steps or the log loss is above 2. A model has also diverged if it had 100,000 or more training examples and all have the same label, for example because clicks were not joined. Without this setting the job fails and the previous model stays. If the job takes snapshots, the training is kept, and the same job with this setting commits it without training again."},
	{Path: "training.warm_start", Default: `""`, Template: true, Tuning: true,
		Meaning: "The earlier model to start from: a model directory, or one of its generations, such as models/ctr@3. latest means the newest model of an earlier run in output.model_dir. If that path contains a date, the directories of earlier dates are searched too, however many nights are missing. A night that is trained again starts from the same model as the first time, which is fetched from output.remote if it is no longer on the machine. The first night makes a new model. Fields, dense columns and towers may have been added or removed since the earlier model. embedding_dim, the row optimizer and the value format may differ too: every row is then copied, and the log says how long that takes. Rows of a removed sparse column stay, and are used again when the column returns; with optimizer.rows adam, their step count then restarts, so that their updates are smaller at first. Empty means a new model."},
}

// onSSD is the condition of keys that tables in memory do not use.
var onSSD = []schema.When{{Path: "sparse_table.kind", In: []string{"ssd"}}}

// lookingAhead is the condition of keys that only the policy lookahead uses.
var lookingAhead = []schema.When{onSSD[0], {Path: "sparse_table.cache_policy", In: []string{"lookahead"}}}

// prioritized is the condition of keys that only partial recovery from snapshots.remote uses.
var prioritized = []schema.When{
	onSSD[0], {Path: "recovery.mode", In: []string{RecoveryPartial}},
	{Note: "snapshots.remote is given", Needs: "snapshots.remote", Only: func(s schema.Scope) string {
		if jobOf(s).Snapshots.Remote == "" {
			return "snapshots.remote is not given"
		}
		return ""
	}},
}

var tableKeys = []Key{
	{Path: "sparse_table.kind", Default: "memory", Values: []string{"memory", "ssd"}, Tuning: true,
		Meaning: "With memory, all rows are in memory. With ssd, rows are in files and a cache in memory holds those in use. ssd has the additional keys dirs, cache_policy, lookahead_passes, dir_budget_bytes, max_space_amplification, hot_bytes, direct_io and queue_depth."},
	{Path: "sparse_table.memory_bytes", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Hard limit of the memory for rows, index and pinned working sets. 0 means no limit, or 256MiB with kind ssd. If the machine or its control group has less, a table on SSD uses only that much, and a table in memory ends the job with an error."},
	{Path: "sparse_table.dirs", Template: true, Tuning: true, When: onSSD,
		DefaultNote: "the model directory", DefaultFrom: func(schema.Scope) string { return "[]" },
		Meaning: "Directories for the table's files, one per SSD. Rows are spread over them and read from all of them in parallel. Losing a directory loses only the rows in its files; recovery.mode says what the run then goes back to. A directory is left out, until it responds again, if its disk has failed, is read-only, or is listed in /etc/fstab but not mounted, provided that another directory remains. Each training run creates its own subdirectory in each. It belongs to the model, which cannot be used without it, and is deleted with that model: see output.keep_generations."},
	{Path: "sparse_table.cache_policy", Default: "lookahead", Values: []string{"lookahead", "history", "lru_lfu"}, Tuning: true, When: onSSD,
		Meaning: "Which rows stay in memory. lookahead keeps the rows that the next passes need, then the most used ones. history and lru_lfu keep the most used ones; history also counts the uses before a row last left memory, lru_lfu does not."},
	{Path: "sparse_table.lookahead_passes", Default: "0", Range: "[0,100000]", Tuning: true,
		When:    lookingAhead,
		Meaning: "How many passes ahead the lookahead policy looks. 0 means 50, or 100 if there is also room to record which rows are not in memory. It looks fewer passes ahead if describing them would take more than an eighth of the cache, if the rows that they need do not fit in the cache, or if pipeline.read_ahead_bytes does not hold that many passes."},
	{Path: "sparse_table.dir_budget_bytes", Default: "0", Range: "[0,inf)", Tuning: true, When: onSSD,
		Meaning: "Hard limit of the bytes that the table's rows take in each directory, including those of snapshots. The catalog, a small file, is not counted. 0 means that only the file system sets a limit."},
	{Path: "sparse_table.max_space_amplification", Default: "2", Range: "[1.1,1000]", Tuning: true, When: onSSD,
		Meaning: "Maximum bytes on disk per byte in use, not counting files that only snapshots need. Files are compacted to stay below it. A lower value takes less space; a higher one writes less. A small table may take more: 3.5MiB of dead bytes per directory, or up to 32MiB if memory_bytes is 256MiB or more, are always allowed."},
	{Path: "sparse_table.hot_bytes", Default: "0", Range: "[-1,inf)", Tuning: true, When: onSSD,
		Meaning: "How many bytes of frequently used rows the last snapshot of a run saves in addition, so that the next run starts with them in memory. These are rows that are in memory and have not changed since they were written to a file. 0 means a quarter of memory_bytes, but at most 1GiB; -1 means none. None are saved if the disk has less than 256MiB left."},
	{Path: "sparse_table.direct_io", Default: "auto", Values: []string{"auto", "on", "off"}, Tuning: true, When: onSSD,
		Meaning: "Whether reads and writes of the table bypass the page cache. With auto they do if the file system supports it; with on, the job fails if it does not; with off, they go through the page cache, which then takes memory in addition to memory_bytes."},
	{Path: "sparse_table.queue_depth", Default: "0", Range: "[0,4096]", Tuning: true, When: onSSD,
		Meaning: "Maximum number of outstanding reads per directory's device. 0 means 256."},
	{Path: "sparse_table.value_format", Default: "float32", Values: []string{"float32", "float16", "bfloat16"}, Tuning: true,
		Meaning: "Number format of the embeddings. float16 and bfloat16 take half the space of float32. They use stochastic rounding, which is reproducible, so that small updates are not lost. The state of the row optimizer is always float32."},
	{Path: "sparse_table.init_stddev", Default: "0.01", Range: "[0,10]",
		Meaning: "Standard deviation of the embeddings of new rows, which are a function of seed and key."},
	{Path: "sparse_table.show_decay", Default: "0.98", Range: "(0,1]", Tuning: true,
		Meaning: "Factor by which the show and click statistics of a row shrink per day."},
	{Path: "sparse_table.admission", Meaning: "Which features get an embedding.", Tuning: true},
	{Path: "sparse_table.admission.min_occurrences", Default: "1", Range: "[1,4294967295]",
		Meaning: "A feature's embedding is trained from its n-th occurrence on. 1 means from the first."},
	{Path: "sparse_table.expiry", Meaning: "Which rows are dropped at the end of the job. This happens after the last evaluation, so the job's metrics are those of the model before the drop.", Tuning: true},
	{Path: "sparse_table.expiry.unseen_days", Default: "0", Range: "[0,100000]",
		Meaning: "Drop rows that have not been trained for this many days. 0 keeps them."},
	{Path: "sparse_table.expiry.min_show", Default: "0", Range: "[0,1e9]",
		Meaning: "Drop rows whose decayed number of impressions is below this. 0 keeps them."},
}

// onDevices is the condition of keys that only the engine for devices uses.
var onDevices = []schema.When{{Path: "engine.kind", In: []string{"cuda"}}}

var engineKeys = []Key{
	{Path: "engine.kind", Default: "cpu", Values: []string{"cpu", "cuda"}, Tuning: true,
		Refused: map[string]string{"gpu": "for GPUs, write cuda"},
		Meaning: "What computes the network: the CPU or CUDA devices. With cuda, the dense network and its optimizer are on the devices, and engine.embeddings says where the rows of a pass are. It needs a program built with `make build-cuda` and NVIDIA's driver (`aibox version` lists the devices). The two engines give models that differ in the last bits of their sums. Each gives the same bits in every run; there is no faster, non-deterministic mode. `aibox eval` and `aibox predict` always use the CPU. A warm start may change it."},
	{Path: "engine.devices", Default: "[0]", Range: "[0,1023]", MinItems: 1, Tuning: true, When: onDevices,
		Meaning: "Numbers of the devices to train on, as nvidia-smi shows them. Each gets an equal part of a mini-batch's examples and holds all parameters; their gradients are summed. A model depends on how many devices there are, not on which. A number may be repeated: that device then acts as several, for tests."},
	{Path: "engine.embeddings", Default: "cpu", Values: []string{"cpu", "device"}, Tuning: true, When: onDevices,
		Refused: map[string]string{"cuda": "for the memory of the GPUs, write device", "gpu": "for the memory of the GPUs, write device"},
		Meaning: "Where the rows of a pass are while it is trained. With cpu, they stay in host memory, and the CPU pools their bags and updates them. With device, they are partitioned over the devices, which pool and update them. Rows that the next pass needs too stay there; others are copied in and out while mini-batches are trained. A pass whose rows do not fit is trained in parts. The model is the same, bit for bit, on the same number of devices."},
	{Path: "engine.precision", Default: "float32", Values: []string{"float32", "tf32", "bf16"}, Tuning: true,
		Refused: map[string]string{
			"bfloat16": "this precision is written bf16",
		},
		Meaning: "Number format of the network's matrix products. With bf16, both operands of a layer's products, forward and backward, are rounded to bfloat16 (8 significant bits), and the sums are float32; standardize dense features with large values, or take their logarithm. Layers with one unit (all that lr and fm have) or one input, parameters, embeddings and optimizers stay float32. tf32 rounds the same products to 11 significant bits; it needs engine.kind: cuda and compute capability 8 or later. On the CPU, bf16 pays off if the processor multiplies pairs of bfloat16 faster than float32, as AMD's do from Zen 4 on and Intel's Emerald Rapids does not (`aibox version` says `with bf16`). Others train the same model, bit for bit, somewhat slower than in float32. A model is evaluated and predicts in the precision that it was trained in, or in float32 after tf32. A warm start may change it."},
}

var runKeys = []Key{
	{Path: "pipeline.batches_per_pass", Default: "16", Range: "[1,65536]",
		Meaning: "Mini-batches per pass. A pass is the unit in which rows are pulled from the table and pinned in memory."},
	{Path: "pipeline.read_queue", Default: "2", Range: "[1,1024]",
		Meaning: "How many passes may wait between reading and the table. If the table looks ahead, read_ahead_bytes allows more."},
	{Path: "pipeline.read_ahead_bytes", Default: "256MiB", Range: "[0,inf)", Tuning: true, When: lookingAhead,
		Meaning: "Memory for passes that wait between reading and the table, so that the table knows which rows the next passes need. It limits how far the table looks ahead. read_queue passes may wait whatever their size; 0 means no more than those. At most an eighth of the memory that is free when the job starts is used."},
	{Path: "pipeline.pull_queue", Default: "2", Range: "[1,1024]",
		Meaning: "How many passes may wait between the table and training, with their rows pinned in memory. Fewer wait if their rows do not fit in sparse_table.memory_bytes."},
	{Path: "pipeline.reader_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that decode the data. 0 means one per core."},
	{Path: "pipeline.compute_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that compute the network. 0 means one per core."},
	{Path: "pipeline.chunk_bytes", Default: "4MiB", Range: "[4096,134217728]",
		Meaning: "How many bytes of a file a reader thread takes at a time."},

	{Path: "snapshots", Tuning: true,
		Meaning: "How often training saves its state, so that an interrupted job resumes from there when it is started again. The model does not depend on it."},
	{Path: "snapshots.every", Default: "auto", WithUnit: true,
		Meaning: "How often a snapshot is taken, always at the end of a pass: a duration such as 10m or 1h30m, a number of examples or passes such as \"50000000 examples\" or \"500 passes\", or auto or none. With auto, the cost of the last snapshot determines the wait for the next one, at least a minute, so that snapshots take less than 0.5 % of the time. A table in memory is written in full each time, so snapshots of large ones are rare. With none there are no snapshots, and an interrupted job starts over."},
	{Path: "snapshots.on_stop_seconds", Default: "30", Range: "[0,86400]",
		Meaning: "How long a job that gets SIGTERM or SIGINT may take to finish its pass and save a last snapshot. If that takes longer, the job ends without it and later resumes from the previous one. With remote, it is also how long the job waits for the last snapshot to be uploaded."},
	{Path: "snapshots.remote", Default: `""`, Template: true,
		Meaning: "Directory to which snapshots are uploaded during training, so that another machine can continue the job if this one is lost: hdfs:// or the path of a mounted file system. It may be that of output.remote; files are then shared. The newest snapshot is uploaded (see remote_every), without the files that the directory already has. A failed upload is retried later; training never waits for it. A job without a local snapshot resumes from the newest remote snapshot of the same job with the same data. The parts of a table on SSD that it reads are fetched on demand, and the rest in the background. If the directory cannot be read then, for as long as data.hdfs.retry_ms allows, the job ends with an error instead of starting over, unless --fresh is given. The same holds if the directory is on a mounted file system and does not exist, unless there are models of the job on the machine; so create it before the first run. The bad rows in the quarantine file are uploaded, too. When the model is committed, and published if output.remote is given, its snapshots there are removed. output.remote_bytes_per_second limits uploads. Empty means that snapshots stay on the machine."},
	{Path: "snapshots.remote_every", Default: "auto", WithUnit: true,
		Meaning: "How often a snapshot is uploaded to remote: a duration such as 1h, a number of snapshots such as \"1 snapshot\" (every one), or auto. With auto, the interval minimizes the sum of the cost of uploads and the expected cost of retraining after the loss of a disk or of the machine: it is the square root of 2 times the cost of an upload times recovery.mean_time_between_failures (CPR, section 2.2). With recovery.mode partial, it is 2 times recovery.max_lost_samples times the number of sparse_table.dirs times recovery.mean_time_between_failures, so that on average as much is lost as is allowed (CPR, section 4.1); the first snapshot is uploaded at once, to measure its cost. A job that is told to stop uploads its last snapshot."},

	{Path: "snapshots.priority", Default: PriorityNone, Values: []string{PriorityNone, "mfu", "ssu", "scar"}, When: prioritized,
		Meaning: "Which rows of the table are uploaded to remote more often, between two snapshots there, so that the loss of a directory costs less (CPR, section 4.2). Each time, priority_fraction of the rows is saved, chosen by what was trained since they were last saved. mfu chooses the most accessed rows and takes up to a sixteenth of sparse_table.memory_bytes in addition. ssu chooses rows from a random sub-sample of the accesses and takes less time and memory than mfu. scar chooses the rows whose values changed most, by the L2 norm, and takes up to as much memory again as sparse_table.memory_bytes. If there is not enough memory for all rows that were accessed, the least important ones are forgotten. Partial recovery gives each lost row the newest values available. recovery.max_lost_samples ignores these saves, so the portion of lost samples is an upper bound."},
	{Path: "snapshots.priority_fraction", Default: "0.125", Range: "(0,1]", When: append(prioritized[:3:3], schema.When{Path: "snapshots.priority", In: []string{"mfu", "ssu", "scar"}}),
		Meaning: "The fraction r of the rows that is saved at a time, every r times the interval of remote_every, with a local snapshot. The default is the paper's (CPR, section 5.1)."},

	{Path: "recovery", Tuning: true,
		Meaning: "What is expected of the disks, and what to do when a disk with a directory of the table is lost."},
	{Path: "recovery.mode", Default: "full", Values: []string{RecoveryFull, RecoveryPartial},
		Meaning: "What a job goes back to when it has lost a directory of its table, during training or before it resumes. With full, the whole run goes back to the newest intact snapshot in snapshots.remote, or to its start, and produces the model of an undisturbed run. With partial (CPR, section 2.3), only the rows in the lost directory go back, to the newest snapshot in snapshots.remote or to the model that the run started from; the rest continues from the newest local snapshot, and rows that are in neither are initialized anew. That is faster, but the model differs, and says so. The whole run goes back nevertheless if an earlier epoch was the best so far, if the table does not fit twice into sparse_table.memory_bytes, or if the rows would go back to a model whose rows the run had to convert, for example for another optimizer. It also does with snapshots.remote_every auto if recovery.max_lost_samples would require uploads so frequent that they cost more than full recovery (CPR, section 4.1)."},
	{Path: "recovery.max_lost_samples", Default: "0.1", Range: "[0,1]", When: []schema.When{{Path: "recovery.mode", In: []string{RecoveryPartial}}},
		Meaning: "The largest portion of lost samples, from 0 to 1, with which a job continues: for each lost directory, the share of all examples that were trained since the snapshot that its rows go back to, times the directory's share of the table (CPR, eq. 4). A job that would lose more ends with an error. 0.1 works reasonably well in many configurations (CPR, section 4.2)."},
	{Path: "recovery.mean_time_between_failures", Default: "28h", WithUnit: true,
		Meaning: "How long a job trains on average until it loses a disk or its machine, such as 28h or 2000h. It determines how often snapshots are uploaded: see snapshots.remote_every. 28 hours is typical of large clusters (CPR, section 5.1); a dedicated machine deserves a higher value, which costs less."},

	{Path: "output.model_dir", Required: true, Template: true,
		Meaning: "Directory that the model, metrics and summary are written to. It must be a local path."},
	{Path: "output.keep_generations", Default: "2", Range: "[1,1000]", Tuning: true,
		Meaning: "How many models stay in model_dir: the last one and its predecessors, which `aibox rollback` can go back to and which are read as DIR@N. Each takes the space of a whole model, except that tables on SSD share the files of rows that did not change. While a job trains there is one more."},
	{Path: "output.metrics", Template: true, Tuning: true, EmptyIsDefault: true,
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(inModelDir(jobOf(s), "metrics.jsonl")) }, DefaultNote: "metrics.jsonl in model_dir",
		Meaning: "File that metrics are written to as JSON lines. If it is outside model_dir, each run appends to it, including one that starts over. With a date in its name, each night has its own."},
	{Path: "output.tensorboard", Template: true, Tuning: true, EmptyIsDefault: true,
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(inModelDir(jobOf(s), "tensorboard")) }, DefaultNote: "tensorboard in model_dir",
		Meaning: "Directory of TensorBoard event files. If it is outside model_dir, each run adds a file to it. none turns them off."},
	{Path: "output.log_every", Default: "100", Range: "[1,inf)", Tuning: true,
		Meaning: "Number of mini-batches between two lines of metrics."},
	{Path: "output.remote", Default: `""`, Template: true, Tuning: true,
		Meaning: "Directory to which the finished model is published: hdfs:// or the path of a mounted file system. Several jobs may share one. Only files that it lacks are uploaded, and a model appears there once it is complete. If publishing fails, the model in model_dir is still complete; the job logs the failure and exits with code 0, and `aibox publish` tries again. `aibox restore` fetches a model from there to any machine. With training.warm_start: latest, a job does so itself if there is no model in model_dir. A directory on a mounted file system must then exist, so create it before the first run. Empty means that models are not published."},
	{Path: "output.remote_keep_generations", Default: "2", Range: "[1,1000]", Tuning: true,
		Meaning: "How many models of a job of this name stay in remote: the newest ones or, with a date in model_dir, those of the latest nights. If an earlier night is trained again, its model stays in addition until the next one is published. A model from which model_dir was rolled back, or whose night was trained again, is deleted first. Files that no model needs any more are deleted."},
	{Path: "output.remote_bytes_per_second", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Maximum bytes per second copied to or from remote or snapshots.remote, such as 100MiB. 0 means no limit."},
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
	{Path: "generate.fields[].name", Required: true, Meaning: "Name of the field. If repeat is more than 1, a number is appended, starting at 1."},
	{Path: "generate.fields[].cardinality", Required: true, Range: "[1,4503599627370496]", Meaning: "Number of distinct values; 1e9 and more is fine."},
	{Path: "generate.fields[].skew", Default: "1.05", Range: "[0,10]", Meaning: "Exponent of the power law of popularity (Zipf). With 0 all values are equally frequent."},
	{Path: "generate.fields[].repeat", Default: "1", Range: "[1,10000]", Meaning: "Number of independent fields with these settings."},
	{Path: "generate.fields[].max_values", Default: "1", Range: "[1,1000]", Meaning: "If more than 1, the field is multi-valued: each example has 1 to max_values values."},
	{Path: "generate.dense_columns", Default: "0", Range: "[0,10000]", Meaning: "Number of dense columns."},
	{Path: "generate.base_rate", Default: "0.1", Range: "(0,1)", Meaning: "Share of positive examples."},
	{Path: "generate.linear_strength", Default: "1", Range: "[0,100]", Meaning: "Standard deviation of the linear part of the true logit."},
	{Path: "generate.interaction_strength", Range: "[0,100]",
		DefaultFrom: func(s schema.Scope) string {
			if variedFields(jobOf(s).Generate) < 2 {
				return "0"
			}
			return "0.5"
		}, DefaultNote: "0.5, or 0 if fewer than two fields have more than one value", Meaning: "Standard deviation of the pairwise part of the true logit."},
	{Path: "generate.latent_dim", Default: "4", Range: "[1,1024]", Meaning: "Dimension of the latent vectors behind the pairwise part."},
	{Path: "generate.drift_per_day", Default: "0", Range: "[0,1]", Meaning: "Share of a feature's effect that changes from one day to the next, either within `days` or between calls of `aibox generate --day`."},
	{Path: "generate.days", Default: "1", Range: "[1,100000]", Meaning: "Number of days that the training examples are spread over."},
	{Path: "generate.train_examples", Default: "1000000", Range: "[0,1e15]", Meaning: "Number of examples drawn for data.train, over all days."},
	{Path: "generate.eval_examples", Default: "100000", Range: "[0,1e15]", Meaning: "Number of examples drawn for data.eval, all from the last day."},
	{Path: "generate.missing_rate", Default: "0", Range: "[0,1)", Meaning: "Share of the cells that are empty."},
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
