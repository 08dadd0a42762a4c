package configs

import (
	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
)

var trainingKeys = []Key{
	{Path: "training.batch_size", Default: "512", Range: "[1,1048576]",
		Meaning: "Examples per mini-batch, that is per optimizer step. 64 to 512 suit small data, 1024 to 8192 logs of many millions of rows."},
	{Path: "training.epochs", Default: "1", Range: "[1,1000000]",
		Meaning: "How many times the training data are read. Models with large embedding tables overfit from the second epoch on."},
	{Path: "training.early_stopping", Tuning: true,
		Meaning: "Ends training when the evaluation no longer improves, and keeps the best epoch."},
	{Path: "training.early_stopping.metric", Default: "auc", Values: []string{"auc", "log_loss"}, Meaning: "The metric that must improve."},
	{Path: "training.early_stopping.patience", Default: "2", Range: "[1,1000000]", Meaning: "How many epochs without improvement end training."},
	{Path: "training.early_stopping.min_delta", Default: "0", Range: "[0,1]", Meaning: "Smaller improvements do not count."},
	{Path: "training.max_examples", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Stop after this many examples in all epochs together. 0 means no limit."},
	{Path: "training.accept_diverged", Default: "false", Tuning: true,
		Meaning: "Whether a model is committed although it has diverged, that is, although its log loss (on what data.validation_fraction holds out, otherwise on data.eval or, if there are none, on the last training examples before they are trained on, where the run took at least 100 optimizer steps or that log loss is above 2) is above the entropy of the labels by more than chance, so that the share of the positives alone would predict better, or although all of its training examples, if they are 100,000 or more, have the same label, as where clicks have not been joined. Otherwise the job fails, and the model before stays. If the job takes snapshots, what was trained is kept, and the same job with this setting commits it without training again."},
	{Path: "training.warm_start", Default: `""`, Template: true, Tuning: true,
		Meaning: "The earlier model to start from: a model directory, or one of its generations, such as models/ctr@3. With latest, it is the newest model of an earlier run in output.model_dir; if that has a date in it, also in the directories that it names at earlier dates, however many nights are missing. A night that is trained again starts from what it started from before, which output.remote may have if the machine does not any more; the first night makes a new model. Fields, dense columns and towers may have been added or removed since, and embedding_dim, the row optimizer and the value format may be others: then every row is copied, and the log says how long it takes. Rows of a sparse column that is left out stay, and are gone on from when it is there again; with optimizer.rows adam, their steps are counted anew then, so that their updates are smaller at first. Empty means a new model."},
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
		Meaning: "With memory, all rows are in memory. With ssd, rows are in files, and the rows in use are in memory; then there are further keys: dirs, cache_policy, lookahead_passes, dir_budget_bytes, max_space_amplification, hot_bytes, direct_io, queue_depth."},
	{Path: "sparse_table.memory_bytes", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "Hard limit of the memory for rows, index and pinned working sets. 0 means no limit, or 256MiB with kind ssd. Where the machine, or its control group, has less, a table on SSD makes do with that, and one in memory ends the job with an error."},
	{Path: "sparse_table.dirs", Template: true, Tuning: true, When: onSSD,
		DefaultNote: "the model directory", DefaultFrom: func(schema.Scope) string { return "[]" },
		Meaning: "Directories for the table's files, one per SSD: rows are spread over them and read from all of them at once. If one of them is lost, so are the rows in its files, and no others; recovery.mode says what the run goes back to then. An entry whose disk has failed, is read-only, or is not mounted although /etc/fstab has it, is left out until it answers again, as long as there is another. Each training run makes a subdirectory of its own in each. It belongs to the model, which cannot be used without it, and is deleted with that model: see output.keep_generations."},
	{Path: "sparse_table.cache_policy", Default: "lookahead", Values: []string{"lookahead", "history", "lru_lfu"}, Tuning: true, When: onSSD,
		Meaning: "Which rows stay in memory. lookahead keeps the rows that the next passes need, then those used most. history and lru_lfu keep those used most: history also counts the uses before a row last left memory, lru_lfu does not."},
	{Path: "sparse_table.lookahead_passes", Default: "0", Range: "[0,100000]", Tuning: true,
		When:    lookingAhead,
		Meaning: "How many passes ahead the policy lookahead looks. 0 means 50, or 100 if there is also room to note which rows are not in memory. It looks fewer passes ahead if describing them would take more than an eighth of the cache, if the rows that they need do not fit the cache, or if pipeline.read_ahead_bytes does not hold so many passes."},
	{Path: "sparse_table.dir_budget_bytes", Default: "0", Range: "[0,inf)", Tuning: true, When: onSSD,
		Meaning: "Hard limit of the bytes that the table's rows take in each directory, including those of snapshots. The catalog, a small file, is not counted. 0 means that only the file system limits them."},
	{Path: "sparse_table.max_space_amplification", Default: "2", Range: "[1.1,1000]", Tuning: true, When: onSSD,
		Meaning: "How many bytes on disk there may be per byte in use, without the files that only snapshots need. Files are compacted before there are more. A lower value takes less space, and a higher one writes less. A small table may take more: dead bytes of 3.5MiB in each directory, or of up to 32MiB where memory_bytes is 256MiB or more, are always allowed."},
	{Path: "sparse_table.hot_bytes", Default: "0", Range: "[-1,inf)", Tuning: true, When: onSSD,
		Meaning: "How many bytes of often used rows the last snapshot of a run saves in addition, so that the next run starts with them in memory. They are rows that are in memory and have not changed since they were written to a file. 0 means a quarter of memory_bytes, but at most 1GiB; -1 means none. When the disk has less than 256MiB left, none are saved."},
	{Path: "sparse_table.direct_io", Default: "auto", Values: []string{"auto", "on", "off"}, Tuning: true, When: onSSD,
		Meaning: "Whether reads and writes of the table bypass the page cache of the operating system. With auto they do so where the file system supports it; with on, the job fails where it does not; with off, they go through the page cache, which then takes memory beside memory_bytes."},
	{Path: "sparse_table.queue_depth", Default: "0", Range: "[0,4096]", Tuning: true, When: onSSD,
		Meaning: "How many reads the device of each directory is given at once. 0 means 256."},
	{Path: "sparse_table.value_format", Default: "float32", Values: []string{"float32", "float16", "bfloat16"}, Tuning: true,
		Meaning: "Number format of the embeddings. float16 and bfloat16 take half the space of float32; they are rounded at random but reproducibly, so that small updates are not lost. The state of the row optimizer is always float32."},
	{Path: "sparse_table.init_stddev", Default: "0.01", Range: "[0,10]",
		Meaning: "Standard deviation of the embeddings of new rows, which are a function of seed and key."},
	{Path: "sparse_table.show_decay", Default: "0.98", Range: "(0,1]", Tuning: true,
		Meaning: "Factor by which the show and click statistics of a row shrink per day."},
	{Path: "sparse_table.admission", Meaning: "Which features get an embedding.", Tuning: true},
	{Path: "sparse_table.admission.min_occurrences", Default: "1", Range: "[1,4294967295]",
		Meaning: "A feature's embedding is trained from its n-th occurrence on. 1 means from the first."},
	{Path: "sparse_table.expiry", Meaning: "Which rows are dropped at the end of the job, after the last evaluation: the metrics of the job are those of the model with them.", Tuning: true},
	{Path: "sparse_table.expiry.unseen_days", Default: "0", Range: "[0,100000]",
		Meaning: "Drop rows that have not been trained for this many days. 0 keeps them."},
	{Path: "sparse_table.expiry.min_show", Default: "0", Range: "[0,1e9]",
		Meaning: "Drop rows whose decayed number of impressions is below this. 0 keeps them."},
}

// onDevices is the condition of keys that only the engine for devices uses.
var onDevices = []schema.When{{Path: "engine.kind", In: []string{"cuda"}}}

var engineKeys = []Key{
	{Path: "engine.kind", Default: "cpu", Values: []string{"cpu", "cuda"}, Tuning: true,
		Refused: map[string]string{"gpu": "the engine for graphics processors is called cuda"},
		Meaning: "What computes the network: the processors of the host, or CUDA devices. With cuda, the dense network, its optimizer included, is on the devices, and engine.embeddings says where the rows of a pass are. It needs a program that was built with `make build-cuda`, and Nvidia's driver (`aibox version` says what there is). The two give models that differ in the last bits of their sums; each gives the same bits in every run, as there is no faster mode that would not. `aibox eval` and `aibox predict` always use the processors of the host. A warm start may change it."},
	{Path: "engine.devices", Default: "[0]", Range: "[0,1023]", MinItems: 1, Tuning: true, When: onDevices,
		Meaning: "Numbers of the devices that train, as nvidia-smi has them. Each gets an equal part of the examples of a mini-batch and has all parameters; their gradients are summed. A model depends on how many there are, not on which. A number may come several times: that device then plays several ones, for tests."},
	{Path: "engine.embeddings", Default: "cpu", Values: []string{"cpu", "device"}, Tuning: true, When: onDevices,
		Refused: map[string]string{"cuda": "the memory of the devices is called device", "gpu": "the memory of the devices is called device"},
		Meaning: "Where the rows of a pass are while it is trained. With cpu, they stay in the memory of the host, whose processors pool their bags and update them. With device, they are divided among the devices, pooled and updated there: rows that the next pass needs too stay there, and others are copied there and back while mini-batches are trained; a pass whose rows do not fit is trained in parts. The model is the same, bit for bit, on the same number of devices."},
	{Path: "engine.precision", Default: "float32", Values: []string{"float32", "tf32", "bf16"}, Tuning: true,
		Refused: map[string]string{
			"bfloat16": "this precision is written bf16",
		},
		Meaning: "Number format of the matrix products of the network. With bf16, both sides of the products of a layer, forward and backward, are rounded to bfloat16 (8 significant bits), and the sums are float32; standardize dense features of large values, or take their logarithm. Layers of one unit, of which lr and fm consist, and of one input, parameters, embeddings and optimizers stay float32. tf32 rounds the same products to 11 significant bits, and is for devices alone (engine.kind: cuda), from compute capability 8 on. On the processors of the host, bf16 pays where the processor multiplies pairs of bfloat16 faster than float32, which AMD's do from Zen 4 on and Intel's Emerald Rapids does not (`aibox version` says `with bf16`); others train the same model, bit for bit, somewhat slower than in float32. A model is evaluated, and predicts, in the precision that it was trained in, with tf32 in float32. A warm start may change it."},
}

var runKeys = []Key{
	{Path: "pipeline.batches_per_pass", Default: "16", Range: "[1,65536]",
		Meaning: "Mini-batches per pass. A pass is the unit in which rows are pulled from the table and pinned in memory."},
	{Path: "pipeline.read_queue", Default: "2", Range: "[1,1024]",
		Meaning: "How many passes may wait between reading and the table. If the table looks ahead, read_ahead_bytes allows more."},
	{Path: "pipeline.read_ahead_bytes", Default: "256MiB", Range: "[0,inf)", Tuning: true, When: lookingAhead,
		Meaning: "Memory for passes that wait between reading and the table, so that the table knows which rows the next passes need. It bounds how far the table looks ahead. read_queue passes may wait however large they are; 0 means no more than those. No more than an eighth of the memory is used that is free when the job begins."},
	{Path: "pipeline.pull_queue", Default: "2", Range: "[1,1024]",
		Meaning: "How many passes may wait between the table and training, with their rows pinned in memory. Fewer wait if their rows do not fit sparse_table.memory_bytes."},
	{Path: "pipeline.reader_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that decode the data. 0 means one per core."},
	{Path: "pipeline.compute_threads", Default: "0", Range: "[0,4096]",
		Meaning: "Threads that compute the network. 0 means one per core."},
	{Path: "pipeline.chunk_bytes", Default: "4MiB", Range: "[4096,134217728]",
		Meaning: "How many bytes of a file one reader thread takes at a time."},

	{Path: "snapshots", Tuning: true,
		Meaning: "When training is saved while it goes on, so that a job that was interrupted goes on from there when it is started again. The model does not depend on it."},
	{Path: "snapshots.every", Default: "auto", WithUnit: true,
		Meaning: "How often a snapshot is taken, always at the end of a pass: a duration such as 10m or 1h30m, a number of examples or passes such as \"50000000 examples\" or \"500 passes\", or auto or none. With auto, what the last snapshot cost decides how long to wait for the next one, a minute at least, so that snapshots take less than 0.5 % of the time. A table in memory is written as a whole each time, so snapshots of large ones are rare. With none, there are no snapshots, and an interrupted job starts over."},
	{Path: "snapshots.on_stop_seconds", Default: "30", Range: "[0,86400]",
		Meaning: "How long a job that gets SIGTERM or SIGINT may take to end its pass and to save a last snapshot. If that takes longer, the job ends without it, and goes on from the one before. With remote, it is also how long the job waits for the last snapshot to be uploaded."},
	{Path: "snapshots.remote", Default: `""`, Template: true,
		Meaning: "Directory to which snapshots are uploaded while training goes on, so that another machine can go on with the job if this one is lost: hdfs:// or the path of a mounted file system. It may be that of output.remote; then files are shared. The newest snapshot is uploaded (see remote_every), and of it what the directory lacks. If that fails, it is tried again later; training never waits for it. A job without a snapshot on its machine goes on from the newest snapshot there of the same job with the same data; what it reads of a table on SSD is fetched when it is read, and the rest in the background. If the directory cannot be read then, for as long as data.hdfs.retry_ms says, the job ends with an error and does not start over, unless --fresh is given; and so it does where the directory is on a mounted file system and does not exist, unless there are models of the job on the machine. Make it before the first run. The bad rows in the quarantine file are uploaded, too. When the model is committed, and published if output.remote is given, its snapshots there are removed. output.remote_bytes_per_second limits uploads. Empty means that snapshots stay on the machine."},
	{Path: "snapshots.remote_every", Default: "auto", WithUnit: true,
		Meaning: "How often a snapshot is uploaded to remote: a duration such as 1h, a number of snapshots such as \"1 snapshot\", which means each of them, or auto. With auto, the interval makes the sum of two times least: what uploading costs, and what has to be trained again after the loss of a disk or of the machine. It is the square root of 2 times the cost of an upload times recovery.mean_time_between_failures (CPR, section 2.2). With recovery.mode partial, it is 2 times recovery.max_lost_samples times the number of sparse_table.dirs times recovery.mean_time_between_failures, so that as much is lost as is allowed, on average (CPR, section 4.1); the first snapshot is uploaded at once, to measure its cost. A job that is told to stop uploads its last snapshot."},

	{Path: "snapshots.priority", Default: PriorityNone, Values: []string{PriorityNone, "mfu", "ssu", "scar"}, When: prioritized,
		Meaning: "Which rows of the table are uploaded to remote more often than the others, between two snapshots there, so that less is lost with a directory (CPR, section 4.2): each time priority_fraction of the rows, by what was trained since they were saved last. With mfu, those with most accesses; it takes up to a sixteenth of sparse_table.memory_bytes, beside the table. With ssu, rows of a random sub-sample of the accesses, which takes less time and memory than mfu. With scar, those whose values changed most, by the L2 norm; it takes up to as much memory as sparse_table.memory_bytes once more. With less memory than there are rows that were accessed, those that matter least are forgotten. Partial recovery then gives each lost row the newest values that are there. recovery.max_lost_samples counts as if none of this was saved: the portion of lost samples is a bound."},
	{Path: "snapshots.priority_fraction", Default: "0.125", Range: "(0,1]", When: append(prioritized[:3:3], schema.When{Path: "snapshots.priority", In: []string{"mfu", "ssu", "scar"}}),
		Meaning: "The fraction r of the rows that is saved at a time, every r times the interval of remote_every, with a local snapshot. 0.125 is that of the paper (CPR, section 5.1)."},

	{Path: "recovery", Tuning: true,
		Meaning: "What is expected of the disks, and what is done when one is lost that has a directory of the table."},
	{Path: "recovery.mode", Default: "full", Values: []string{RecoveryFull, RecoveryPartial},
		Meaning: "What goes back when a job has lost a directory of its table, while it trains or before it goes on after an interruption. With full, the whole run goes back to the newest snapshot that is whole, in snapshots.remote, or to its beginning, and makes the model of an undisturbed run. With partial (CPR, section 2.3), only the rows in the lost directory go back, to the newest snapshot in snapshots.remote or to the model that the run began with, and the rest goes on from the newest snapshot on this machine; rows that are in neither begin anew. That is faster, but the model is another one, and says so. If an epoch before was the best so far, or the table does not fit twice into sparse_table.memory_bytes, or the rows would go back to a model whose rows the run had to convert, as with another optimizer, the whole run goes back; and so it does with snapshots.remote_every auto where recovery.max_lost_samples would take uploads so often that they cost more than full recovery does (CPR, section 4.1)."},
	{Path: "recovery.max_lost_samples", Default: "0.1", Range: "[0,1]", When: []schema.When{{Path: "recovery.mode", In: []string{RecoveryPartial}}},
		Meaning: "The largest portion of lost samples, from 0 to 1, with which a job goes on: for each lost directory, the share of all examples that were trained since the snapshot that its rows go back to, times the share of the table that it had (CPR, eq. 4). A job that would lose more ends with an error. 0.1 works reasonably well across many set-ups (CPR, section 4.2)."},
	{Path: "recovery.mean_time_between_failures", Default: "28h", WithUnit: true,
		Meaning: "How long a job trains on average until it loses a disk or its machine, as 28h or 2000h. It decides how often snapshots are uploaded: see snapshots.remote_every. 28 hours is what large clusters have (CPR, section 5.1); for a machine that is not taken away more is right, and costs less."},

	{Path: "output.model_dir", Required: true, Template: true,
		Meaning: "Directory that the model, metrics and summary are written to. It must be a local path."},
	{Path: "output.keep_generations", Default: "2", Range: "[1,1000]", Tuning: true,
		Meaning: "How many models stay in model_dir: the last one, and those before it, to which `aibox rollback` goes back and which are read as DIR@N. Each takes the space of a whole model, except that tables on SSD share the files of rows that did not change; while a job trains there is one more."},
	{Path: "output.metrics", Template: true, Tuning: true, EmptyIsDefault: true,
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(inModelDir(jobOf(s), "metrics.jsonl")) }, DefaultNote: "metrics.jsonl in model_dir",
		Meaning: "File that metrics are written to as JSON lines. Outside of model_dir, each run appends to it, also one that starts over; with a date in its name each night has its own."},
	{Path: "output.tensorboard", Template: true, Tuning: true, EmptyIsDefault: true,
		DefaultFrom: func(s schema.Scope) string { return yamltree.Text(inModelDir(jobOf(s), "tensorboard")) }, DefaultNote: "tensorboard in model_dir",
		Meaning: "Directory of TensorBoard event files. Outside of model_dir, each run adds a file to it. With none they are not written."},
	{Path: "output.log_every", Default: "100", Range: "[1,inf)", Tuning: true,
		Meaning: "Number of mini-batches between two lines of metrics."},
	{Path: "output.remote", Default: `""`, Template: true, Tuning: true,
		Meaning: "Directory to which the finished model is published: hdfs:// or the path of a mounted file system. Several jobs may share one. Only what it lacks is uploaded, and a model appears there when it is whole. If that fails, the model in model_dir is complete all the same, the job says so and ends with exit code 0; `aibox publish` tries it again. `aibox restore` brings a model from there to any machine; with training.warm_start: latest, a job does so by itself where there is no model in model_dir; a directory on a mounted file system must exist then, so make it before the first run. Empty means that models are not published."},
	{Path: "output.remote_keep_generations", Default: "2", Range: "[1,1000]", Tuning: true,
		Meaning: "How many models of a job of this name stay in remote: the newest or, with a date in model_dir, those of the latest nights; then the model of an earlier night that was trained again stays beside them until the next one is published. A model that model_dir went back from, as one of a night that was trained again, makes room first. What no model needs any more is deleted."},
	{Path: "output.remote_bytes_per_second", Default: "0", Range: "[0,inf)", Tuning: true,
		Meaning: "How many bytes in a second are moved to remote, or to snapshots.remote, or from there at most, as 100MiB. 0 means no limit."},
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
	{Path: "generate.fields[].name", Required: true, Meaning: "Name of the field. If repeat is more than 1, a number is appended, from 1 on."},
	{Path: "generate.fields[].cardinality", Required: true, Range: "[1,4503599627370496]", Meaning: "Number of different values, which may be 1e9 and more."},
	{Path: "generate.fields[].skew", Default: "1.05", Range: "[0,10]", Meaning: "Exponent of the power law of popularity (Zipf). With 0 all values are equally frequent."},
	{Path: "generate.fields[].repeat", Default: "1", Range: "[1,10000]", Meaning: "Number of independent fields with these settings."},
	{Path: "generate.fields[].max_values", Default: "1", Range: "[1,1000]", Meaning: "If this is more than 1, the field is multi-valued: each example has 1 to max_values values."},
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
	{Path: "generate.eval_examples", Default: "100000", Range: "[0,1e15]", Meaning: "Number of examples drawn for data.eval, which are of the last day."},
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
