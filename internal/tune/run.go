package tune

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer"
	"aibox/trainer/forecast"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// Options say how to search for settings of a job.
type Options struct {
	Job  *configs.Job        // of a file, with Load
	Load configs.LoadOptions // overrides and date of the job
	Dir  string              // the journal and the models of the trials; they are deleted one by one

	Trials             int      // with the job as it is
	Groups             []string // what is varied, of Groups
	MaxEpochs          int      // a trial trains for at most so many, if Epochs is among Groups
	Metric             Metric
	Examples           int64   // as many examples are used at most; 0: all of data.train, or data.limit
	ValidationFraction float64 // the share of the examples that is held out
	Seed               uint64  // of the choice of trials
	Fresh              bool    // forget an interrupted search

	Logger  *slog.Logger
	Version string
	// Watch shows the status of a trial until the function that it returns is called; nil: nothing
	// is shown.
	Watch func(*report.Status) (stop func())
}

// Outcome is what a search found.
type Outcome struct {
	*Best
	Rounds []Round
	Text   []byte // of the job file that was searched
	// Set are the overrides that give the best settings: those of the job as it was searched, and
	// those of the best trial.
	Set []string
}

// Run searches for settings of a job, or goes on with a search that was interrupted.
func Run(ctx context.Context, o Options) (_ *Outcome, err error) {
	r := &runner{Options: o}
	if r.text, err = os.ReadFile(o.Job.File()); err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	if o.Fresh {
		if err := r.forget(); err != nil {
			return nil, err
		}
	}
	examples, err := r.size(ctx)
	if err != nil {
		return nil, err
	}
	journal, err := r.openJournal(ctx, examples)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	trials := Draw(Space(o.Job, o.Groups), o.Trials, o.Seed)
	rounds := Rounds(max(len(trials)-1, 1), examples)
	for i := range rounds {
		if rounds[i].Examples == 0 {
			rounds[i].Examples = r.limit()
		}
	}
	o.Logger.Info("searching", "trials", len(trials), "rounds", len(rounds), "examples", examples, "readings_of_all_examples_per_epoch", fmt.Sprintf("%.1f", Readings(rounds, examples)), "results_of_an_earlier_run", journal.Results())
	search := &Search{Trials: trials, Rounds: rounds, Metric: o.Metric, Run: r.run, Journal: journal}
	best, err := search.Do(ctx)
	if err != nil {
		return nil, err
	}
	return &Outcome{best, rounds, r.text, append(r.found(best), overrides(best.Trial)...)}, nil
}

// runner trains trials.
type runner struct {
	Options
	text []byte // of the job file: all trials have the same one, even if the file is edited meanwhile
}

// limit is how many examples the last round uses at most; 0: all.
func (r *runner) limit() int64 {
	if r.Examples > 0 && (r.Job.Data.Limit == 0 || r.Examples < r.Job.Data.Limit) {
		return r.Examples
	}
	return r.Job.Data.Limit
}

// size is about how many examples the last round uses.
func (r *runner) size(ctx context.Context) (int64, error) {
	limit := r.limit()
	if r.Examples > 0 {
		return limit, nil // data with fewer make the rounds smaller, too
	}
	size, err := forecast.SampleData(ctx, r.Job)
	if err != nil {
		return 0, err
	}
	switch {
	case size.Examples == 0 && limit == 0:
		return 0, errkind.Errorf(errkind.Usage, "the number of examples in data.train cannot be estimated; set with --examples how many of them to use, such as 10000000")
	case size.Examples == 0 || limit > 0 && limit < size.Examples:
		return limit, nil
	}
	return size.Examples, nil
}

// found are the overrides of the job that was searched.
func (r *runner) found(best *Best) []string {
	sets := append([]string{}, r.Load.Set...)
	if r.findsEpochs() && best.Result.Epoch != r.Job.Training.Epochs {
		sets = append(sets, "training.epochs="+strconv.Itoa(best.Result.Epoch))
	}
	return sets
}

// findsEpochs reports whether the search determines the number of epochs. A job with early stopping
// determines it itself.
func (r *runner) findsEpochs() bool {
	return slices.Contains(r.Groups, Epochs) && r.Job.Training.EarlyStopping == nil
}

func overrides(t Trial) (out []string) {
	for _, s := range t.Settings {
		out = append(out, s.String())
	}
	return out
}

// openJournal opens the journal of this search.
func (r *runner) openJournal(ctx context.Context, examples int64) (*Journal, error) {
	var job bytes.Buffer
	if err := r.Job.Show(&job); err != nil {
		return nil, err
	}
	var values []string // without the comment that has the date: a search may take longer than a day
	for line := range strings.Lines(job.String()) {
		if !strings.HasPrefix(line, "#") {
			values = append(values, line)
		}
	}
	sources := jobsource.New(r.Job, r.Logger)
	listing, err := sources.List(ctx, r.Job.Data.Train)
	if err := errors.Join(err, sources.Close()); err != nil {
		return nil, fmt.Errorf("data.train: %w", err)
	}
	files, err := json.Marshal(listing)
	if err != nil {
		return nil, err
	}
	j, err := OpenJournal(r.Dir, map[string]string{
		"job file (hash)": hash([]byte(strings.Join(values, ""))), "training data (hash)": hash(files),
		"number of trials": strconv.Itoa(r.Trials), "list of what is varied": strings.Join(r.Groups, ","), "greatest number of epochs": strconv.Itoa(r.MaxEpochs),
		"metric": string(r.Metric), "number of examples": strconv.FormatInt(examples, 10), "share held out": number(r.ValidationFraction),
		"seed": strconv.FormatUint(r.Seed, 10),
	})
	var different *DifferentError
	if errors.As(err, &different) {
		err = errkind.Errorf(errkind.Usage, "%w; use --fresh to begin a new search, which deletes the results of that one, or name another directory with --dir", err)
	}
	return j, err
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// forget deletes an earlier search. Without its journal there is none, and nothing is deleted.
func (r *runner) forget() error {
	journal := filepath.Join(r.Dir, JournalName)
	if _, err := os.Lstat(journal); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if trialName.MatchString(e.Name()) {
			if err := modeldir.Remove(filepath.Join(r.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(journal)
}

// trialName is the name of the directory of a trial in a round.
var trialName = regexp.MustCompile(`^trial-[0-9]+-[0-9]+$`)

// run trains a trial, measures it on the end of its examples, and deletes its model.
func (r *runner) run(ctx context.Context, t Trial, round int, examples int64) (*Result, error) {
	dir := filepath.Join(r.Dir, fmt.Sprintf("trial-%d-%d", t.ID, round))
	log := r.Logger.With("trial", t.ID, "round", round)
	job, err := r.jobOf(t, dir, examples)
	if err != nil && t.ID != 0 {
		log.Info("no model", "settings", t.Changes(), "error", err)
		return &Result{Failure: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	log.Info("training", "settings", t.Changes())
	status := new(report.Status)
	if r.Watch != nil {
		defer r.Watch(status)()
	}
	said := slog.LevelWarn // what every job says would bury what the search says
	if t.ID != 0 {
		said = slog.LevelError
	}
	began := time.Now()
	s, err := trainer.Train(ctx, job, trainer.Options{Logger: slog.New(atLeast{log.Handler(), said}), Status: status, Version: r.Version})
	result := &Result{Seconds: time.Since(began).Seconds()}
	switch {
	case err != nil && noModel(ctx, t, err):
		result.Failure = err.Error()
		log.Info("no model", "error", err)
	case err != nil:
		return nil, fmt.Errorf("trial %d (%s): %w", t.ID, t.Changes(), err)
	default:
		v := s.Validation
		*result = Result{HeldOut: v.Examples, LogLoss: float64(v.LogLoss), AUC: v.AUC, Epoch: s.KeptEpoch, Seconds: s.ElapsedSeconds}
		if math.IsNaN(result.LogLoss) {
			return nil, errkind.Errorf(errkind.Data, "the log loss is undefined on the %d examples that are held out: they all have weight 0; hold out more of them, or use more examples", v.Examples)
		}
		if r.Metric == AUC && !v.AUC.Defined() {
			return nil, errkind.Errorf(errkind.Data, "the AUC is undefined on the %d examples that are held out: they all have the same label; hold out more of them, or use more examples", v.Examples)
		}
		log.Info("trained", "log_loss", number(result.LogLoss), "auc", figure("%.4g", result.AUC), "epoch", result.Epoch)
	}
	return result, modeldir.Remove(dir)
}

// noModel reports whether there is no model because of the trial's settings: it diverged, or they
// are incompatible.
func noModel(ctx context.Context, t Trial, err error) bool {
	kind := errkind.Of(ctx, err)
	return kind == errkind.Diverged || kind == errkind.Job && t.ID != 0
}

// jobOf is the job of a trial. It has the date of the job that is searched, even after midnight.
func (r *runner) jobOf(t Trial, dir string, examples int64) (*configs.Job, error) {
	o := r.Load
	o.Now = func() time.Time { return r.Job.Date }
	o.Set = append(append([]string{}, o.Set...), overrides(t)...)
	quoted := strconv.Quote(dir)
	o.Set = append(o.Set,
		"name="+strconv.Quote(r.Job.PlainName()+" "+filepath.Base(dir)),
		"output.model_dir="+quoted, "output.keep_generations=1", `output.remote=""`, `snapshots.remote=""`,
		"output.metrics="+strconv.Quote(filepath.Join(dir, "metrics.jsonl")), "output.tensorboard=none",
		"data.limit="+strconv.FormatInt(examples, 10), "data.validation_fraction="+strconv.FormatFloat(r.ValidationFraction, 'g', -1, 64), "data.eval=[]",
		`training.warm_start=""`,
	)
	if r.findsEpochs() {
		o.Set = append(o.Set, "training.epochs="+strconv.Itoa(r.MaxEpochs))
		if r.MaxEpochs > 1 {
			o.Set = append(o.Set, fmt.Sprintf("training.early_stopping={metric: %s, patience: 1}", r.Metric))
		}
	}
	return configs.Parse(r.Job.File(), r.text, o)
}

// atLeast passes on what has at least this level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(a), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
