package configs

import (
	"time"

	"aibox/configs/internal/jobdate"
)

// Job is one training job, as Load returns it: defaults filled in, templates
// expanded. A key that the job's kind of model, optimizer or format does not
// use has the zero value. What each key means is in the keys files.
type Job struct {
	Name        string      `yaml:"name"`
	Seed        uint64      `yaml:"seed"`
	Timezone    string      `yaml:"timezone"`
	Data        Data        `yaml:"data"`
	Model       Model       `yaml:"model"`
	Optimizer   Optimizer   `yaml:"optimizer"`
	Training    Training    `yaml:"training"`
	SparseTable SparseTable `yaml:"sparse_table"`
	Engine      Engine      `yaml:"engine"`
	Pipeline    Pipeline    `yaml:"pipeline"`
	Snapshots   Snapshots   `yaml:"snapshots"`
	Recovery    Recovery    `yaml:"recovery"`
	Output      Output      `yaml:"output"`
	Generate    *Generate   `yaml:"generate"` // only for `aibox generate`

	// Date is the job's date in its time zone: that of --date, or the current
	// hour.
	Date time.Time `yaml:"-"`
	// DateGiven tells whether --date was given.
	DateGiven bool `yaml:"-"`
	// Dated tells whether the job belongs to Date: --date was given, or a
	// template of the job file uses it.
	Dated bool `yaml:"-"`

	columnNames map[string]bool // while the job is loaded
	zone        string          // name of Date's time zone, even if Timezone is faulty
	file        string          // the job file
	plainName   string          // Name as it was written
	modelDir    jobdate.Text    // Output.ModelDir; nil if there is no date in it
	hourly      bool            // the job is not the same at all hours of Date
	given       map[string]bool // paths that were in the job file or the overrides
	notes       []string        // see Notes
	warnings    []string        // see Warnings
}

// Given reports whether the job file or an override gives a key, such as model.towers.
func (j *Job) Given(path string) bool { return j.given[path] }

// File is the path of the job file, "" where the job was made by hand.
func (j *Job) File() string { return j.file }

// Notes returns sentences about keys of the job file that were dropped because overrides left them
// without effect.
func (j *Job) Notes() []string { return j.notes }

// Warnings returns sentences about settings that may not be what the user meant.
func (j *Job) Warnings() []string { return j.warnings }

// PlainName is the name as it was written, with its templates, so that it is the same at
// any date.
func (j *Job) PlainName() string {
	if j.plainName != "" {
		return j.plainName
	}
	return j.Name
}

// Data says where the examples are and how to read them.
type Data struct {
	Train []string `yaml:"train"` // URIs: local paths, globs, hdfs://
	Eval  []string `yaml:"eval"`
	// ValidationFraction is the share of data.train, at its end, that is held out.
	ValidationFraction float64 `yaml:"validation_fraction"`

	Format      string   `yaml:"format"`      // criteo, csv, tsv, libsvm, libffm, parquet
	Compression string   `yaml:"compression"` // auto (by extension), none, gzip, zstd, snappy, bzip2, deflate
	Header      *bool    `yaml:"header"`      // csv, tsv: the first line of each file names the columns
	Delimiter   string   `yaml:"delimiter"`   // csv, tsv: one byte; default "," for csv, tab for tsv
	Quoting     string   `yaml:"quoting"`     // csv, tsv: rfc4180 or none
	NullValues  []string `yaml:"null_values"` // csv, tsv: cells that mean a missing value
	Columns     []Column `yaml:"columns"`     // schema; for criteo only what differs from the format's
	// Label is a column of 0 and 1, or a column with a threshold, such as
	// "rating >= 4". The default is the column of role label, and "label" for
	// libsvm and libffm.
	Label            string  `yaml:"label"`
	GroupBy          string  `yaml:"group_by"`          // column for group AUC
	Limit            int64   `yaml:"limit"`             // train on at most this many examples per epoch; 0: all
	ShuffleBuffer    int     `yaml:"shuffle_buffer"`    // examples; 0: keep the order
	NegativeSampling float64 `yaml:"negative_sampling"` // keep this share of negatives, (0,1]; 1: all
	MaxBadRows       int64   `yaml:"max_bad_rows"`      // stop at more than this many; -1: no limit
	MaxBadFraction   float64 `yaml:"max_bad_fraction"`  // stop at more than this share
	MaxLostFraction  float64 `yaml:"max_lost_fraction"` // stop at more than this share of the bytes
	QuarantineRows   int     `yaml:"quarantine_rows"`   // bad rows written to the quarantine file
	MaxLineBytes     Bytes   `yaml:"max_line_bytes"`    // a longer line is a bad row
	HDFS             HDFS    `yaml:"hdfs"`
}

// Column is one column of the schema.
type Column struct {
	Name string `yaml:"name"`
	Role string `yaml:"role"` // label, dense, sparse, weight, ignore
	// Dense columns.
	Missing   NumberOrWord `yaml:"missing"`   // value for a missing cell, or indicator
	Transform []Transform  `yaml:"transform"` // applied in order
	// Sparse columns.
	Separator       string `yaml:"separator"`        // multi-valued: splits the cell
	WeightSeparator string `yaml:"weight_separator"` // each value may carry a weight: value:0.5
	Space           string `yaml:"space"`            // embedding space; default: the column's name
	Pooling         string `yaml:"pooling"`          // sum or mean; empty: model.pooling
	// LibSVM: the feature indices that belong to this column, inclusive.
	// LibFFM: the field number.
	Range []int64 `yaml:"range"`
	Field *int    `yaml:"field"`
	Group string  `yaml:"group"` // a kind of dense features; towers of the aibox model choose by it
}

// Transform is one step on a dense column. Kind is log1p, standardize, clip or
// bucketize; in YAML either the bare name or a map {standardize: {mean: 1, std: 2}}.
// bucketize turns the column into a sparse feature and must be the last step.
type Transform struct {
	Kind       string
	Mean, Std  *float64  // standardize; computed by a first scan when not given
	Min, Max   *float64  // clip
	Boundaries []float64 // bucketize: ascending
}

// HDFS configures the client; core-site.xml and hdfs-site.xml give the rest.
type HDFS struct {
	ConfDir           string `yaml:"conf_dir"` // default: $HADOOP_CONF_DIR, $HADOOP_HOME/etc/hadoop, /etc/hadoop/conf
	User              string `yaml:"user"`     // default: $HADOOP_USER_NAME, the process's user
	KerberosPrincipal string `yaml:"kerberos_principal"`
	KerberosKeytab    string `yaml:"kerberos_keytab"`
	KerberosCCache    string `yaml:"kerberos_ccache"` // default: $KRB5CCNAME, krb5.conf's, /tmp/krb5cc_UID
	Krb5Conf          string `yaml:"krb5_conf"`       // default: $KRB5_CONFIG, /etc/krb5.conf
	TimeoutMs         int    `yaml:"timeout_ms"`      // of one network operation
	RetryMs           int    `yaml:"retry_ms"`        // total time spent on retries of one operation

	AllowMissingChecksums bool `yaml:"allow_missing_checksums"` // read a replica without checksums if there is no other
}

// Model chooses the network.
type Model struct {
	Kind         string       `yaml:"kind"` // aibox, dlrm, wide_deep, deepfm, dcn, dcn_v2, fm, lr
	EmbeddingDim int          `yaml:"embedding_dim"`
	BottomLayers []int        `yaml:"bottom_layers"` // dlrm; the last is embedding_dim
	HiddenLayers []int        `yaml:"hidden_layers"` // dlrm: top network; others: the deep network
	CrossLayers  int          `yaml:"cross_layers"`  // dcn, dcn_v2
	CrossRank    int          `yaml:"cross_rank"`    // dcn_v2: low rank of the cross matrices; 0: full
	Structure    string       `yaml:"structure"`     // dcn, dcn_v2: parallel or stacked
	Towers       []Tower      `yaml:"towers"`        // aibox
	DenseVectors bool         `yaml:"dense_vectors"` // fm, deepfm: vectors of dense features
	Activation   string       `yaml:"activation"`    // relu, leaky_relu, tanh, sigmoid, identity
	Dropout      float64      `yaml:"dropout"`
	BatchNorm    bool         `yaml:"batch_norm"`
	InitialBias  NumberOrWord `yaml:"initial_bias"` // auto: the log odds of the first examples
	Pooling      string       `yaml:"pooling"`      // sum or mean, for multi-valued fields

	// EmbeddingActivation is that of the pooled embeddings of aibox; "": Activation, in models of
	// versions without it.
	EmbeddingActivation string `yaml:"embedding_activation"`
}

// Tower is one network of the aibox model (§2.2): the embeddings plus one kind
// of dense features.
type Tower struct {
	Name   string   `yaml:"name"`
	Dense  []string `yaml:"dense"` // columns, or groups of columns
	Layers []int    `yaml:"layers"`
}

// Optimizer holds one optimizer for the dense network and one for rows.
type Optimizer struct {
	Dense    DenseOptimizer `yaml:"dense"`
	Rows     RowOptimizer   `yaml:"rows"`
	Linear   *RowOptimizer  `yaml:"linear"` // of the linear weights of rows; nil: Rows
	Schedule Schedule       `yaml:"schedule"`
}

// DenseOptimizer configures the optimizer of the dense network: sgd, momentum,
// adagrad, adam or adamw.
type DenseOptimizer struct {
	Kind               string  `yaml:"kind"`
	LearningRate       float64 `yaml:"learning_rate"`
	Momentum           float64 `yaml:"momentum"`
	Beta1              float64 `yaml:"beta1"`
	Beta2              float64 `yaml:"beta2"`
	Epsilon            float64 `yaml:"epsilon"`
	InitialAccumulator float64 `yaml:"initial_accumulator"`
	L2                 float64 `yaml:"l2"`           // added to the gradient
	WeightDecay        float64 `yaml:"weight_decay"` // adamw: decoupled
	Averaging          float64 `yaml:"averaging"`    // of the parameters that the model predicts with
}

// RowOptimizer configures the optimizer of embedding rows: sgd, adagrad,
// rowwise_adagrad, adam or ftrl. Its L2 applies to the rows of a mini-batch.
type RowOptimizer struct {
	Kind               string  `yaml:"kind"`
	LearningRate       float64 `yaml:"learning_rate"`
	Beta1              float64 `yaml:"beta1"`
	Beta2              float64 `yaml:"beta2"`
	Epsilon            float64 `yaml:"epsilon"`
	InitialAccumulator float64 `yaml:"initial_accumulator"`
	L2                 float64 `yaml:"l2"`
	WeightDecay        float64 `yaml:"weight_decay"` // decoupled, of all rows
	TableL2            float64 `yaml:"table_l2"`     // of all rows, by Adagrad's denominators
	FTRLL1             float64 `yaml:"ftrl_l1"`
	FTRLL2             float64 `yaml:"ftrl_l2"`
	FTRLBeta           float64 `yaml:"ftrl_beta"`
}

// Schedule is a multiplier of both learning rates, which changes with the steps.
type Schedule struct {
	WarmupSteps int64   `yaml:"warmup_steps"` // linear from 0
	Decay       string  `yaml:"decay"`        // none, linear, cosine, exponential, inverse_sqrt
	DecaySteps  int64   `yaml:"decay_steps"`  // steps after the warm-up until the floor; exponential: steps per factor
	DecayRate   float64 `yaml:"decay_rate"`   // exponential: factor per decay_steps
	Floor       float64 `yaml:"floor"`        // smallest multiplier
}

// Training says how long to train, with what batches, and from which model.
type Training struct {
	BatchSize      int            `yaml:"batch_size"`
	Epochs         int            `yaml:"epochs"`
	EarlyStopping  *EarlyStopping `yaml:"early_stopping"`
	MaxExamples    int64          `yaml:"max_examples"`    // over all epochs; 0: no limit
	AcceptDiverged bool           `yaml:"accept_diverged"` // commit a model that is worse than a constant
	WarmStart      string         `yaml:"warm_start"`      // an earlier model directory, or WarmStartLatest
}

// EarlyStopping ends training when the evaluation metric has not improved for
// Patience epochs, and keeps the best epoch.
type EarlyStopping struct {
	Metric   string  `yaml:"metric"` // auc, log_loss
	Patience int     `yaml:"patience"`
	MinDelta float64 `yaml:"min_delta"`
}

// SparseTable configures the embedding table.
type SparseTable struct {
	Kind        string `yaml:"kind"`         // memory, ssd
	MemoryBytes Bytes  `yaml:"memory_bytes"` // hard limit for rows, index and pinned working sets; 0: none, or 256 MiB on SSD

	// For kind ssd only.
	Dirs                  []string `yaml:"dirs"` // one per SSD; empty: in the model directory
	CachePolicy           string   `yaml:"cache_policy"`
	LookaheadPasses       int      `yaml:"lookahead_passes"`        // 0: chosen from the budget
	DirBudgetBytes        Bytes    `yaml:"dir_budget_bytes"`        // of each directory; 0: no limit
	MaxSpaceAmplification float64  `yaml:"max_space_amplification"` // bytes on disk per byte in use
	HotBytes              Bytes    `yaml:"hot_bytes"`               // of unchanged rows that a snapshot saves in addition; 0: chosen; -1: none
	DirectIO              string   `yaml:"direct_io"`               // auto, on, off
	QueueDepth            int      `yaml:"queue_depth"`             // 0: chosen

	ValueFormat string    `yaml:"value_format"` // of embeddings: float32, float16, bfloat16
	InitStddev  *float64  `yaml:"init_stddev"`  // of new rows
	ShowDecay   float64   `yaml:"show_decay"`   // factor per day on show and click
	Admission   Admission `yaml:"admission"`
	Expiry      Expiry    `yaml:"expiry"`
}

// Admission has an embedding trained only from its feature's n-th occurrence on.
type Admission struct {
	MinOccurrences uint32 `yaml:"min_occurrences"`
}

// Expiry says which rows are dropped at the end of the job.
type Expiry struct {
	UnseenDays uint32  `yaml:"unseen_days"`
	MinShow    float64 `yaml:"min_show"`
}

// Engine says how the network is computed.
type Engine struct {
	Kind       string `yaml:"kind"`       // cpu, cuda
	Devices    []int  `yaml:"devices"`    // cuda: their numbers
	Embeddings string `yaml:"embeddings"` // cuda: where the rows of a pass are: cpu, device
	Precision  string `yaml:"precision"`  // of matrix products: float32, tf32, bf16
}

// Pipeline sizes the stages. Nothing here changes the model.
type Pipeline struct {
	BatchesPerPass int   `yaml:"batches_per_pass"`
	ReadQueue      int   `yaml:"read_queue"`       // passes that may wait between reading and the table
	ReadAheadBytes Bytes `yaml:"read_ahead_bytes"` // of passes that may wait beyond ReadQueue if the table looks ahead
	PullQueue      int   `yaml:"pull_queue"`       // passes that may wait between the table and training
	ReaderThreads  int   `yaml:"reader_threads"`
	ComputeThreads int   `yaml:"compute_threads"`
	ChunkBytes     Bytes `yaml:"chunk_bytes"` // byte range that one reader thread takes at a time
}

// Snapshots says when training is saved so that an interrupted job can go on.
type Snapshots struct {
	Every         string  `yaml:"every"`           // auto, none, a duration, or a number of examples or passes: see SnapshotInterval
	OnStopSeconds float64 `yaml:"on_stop_seconds"` // for the last snapshot after a signal
	Remote        string  `yaml:"remote"`          // URI; "": snapshots are on this machine alone
	RemoteEvery   string  `yaml:"remote_every"`    // auto, a duration, or a number of snapshots: see RemoteInterval

	Priority         string  `yaml:"priority"`          // which rows are saved in between: PriorityNone, or a kind of package priority
	PriorityFraction float64 `yaml:"priority_fraction"` // of the rows, each time, and of the interval between two uploads
}

// PriorityNone is the value of snapshots.priority that saves no rows between two uploads.
const PriorityNone = "none"

// The values of recovery.mode.
const (
	RecoveryFull    = "full"
	RecoveryPartial = "partial"
)

// Recovery says what a job expects of its disks, and what it does when one is lost.
type Recovery struct {
	Mode                    string  `yaml:"mode"`                       // RecoveryFull or RecoveryPartial
	MaxLostSamples          float64 `yaml:"max_lost_samples"`           // with RecoveryPartial: the most that the run may lose
	MeanTimeBetweenFailures string  `yaml:"mean_time_between_failures"` // a duration
}

// Output says what is written and where.
type Output struct {
	ModelDir        string `yaml:"model_dir"`
	KeepGenerations int    `yaml:"keep_generations"` // models that stay in ModelDir
	Metrics         string `yaml:"metrics"`          // JSON lines; default model_dir/metrics.jsonl
	TensorBoard     string `yaml:"tensorboard"`      // directory of event files; default model_dir/tensorboard; "none"
	LogEvery        int64  `yaml:"log_every"`        // mini-batches between metric lines

	Remote                string `yaml:"remote"`                  // URI; "": models are not published
	RemoteKeepGenerations int    `yaml:"remote_keep_generations"` // models of the job that stay in Remote
	RemoteBytesPerSecond  Bytes  `yaml:"remote_bytes_per_second"` // 0: no limit
}

// Generate is the known model that `aibox generate` draws examples from.
type Generate struct {
	Fields              []GenerateField `yaml:"fields"`
	DenseColumns        int             `yaml:"dense_columns"`
	BaseRate            float64         `yaml:"base_rate"`            // share of positives
	LinearStrength      float64         `yaml:"linear_strength"`      // sd of the linear part of the true logit
	InteractionStrength float64         `yaml:"interaction_strength"` // sd of the pairwise part
	LatentDim           int             `yaml:"latent_dim"`
	DriftPerDay         float64         `yaml:"drift_per_day"` // share of a feature's effect that changes per day
	Days                int             `yaml:"days"`
	TrainExamples       int64           `yaml:"train_examples"` // over all days
	EvalExamples        int64           `yaml:"eval_examples"`
	MissingRate         float64         `yaml:"missing_rate"`
}

// GenerateField is one sparse field, or Repeat equal ones.
type GenerateField struct {
	Name        string  `yaml:"name"`
	Cardinality int64   `yaml:"cardinality"` // up to 1e9 and more
	Skew        float64 `yaml:"skew"`        // Zipf exponent
	Repeat      int     `yaml:"repeat"`
	MaxValues   int     `yaml:"max_values"` // multi-valued: 1..max_values values
}
