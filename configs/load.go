package configs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"aibox/configs/internal/schema"
	"aibox/configs/internal/yamltree"
)

// LoadOptions are what the command line and the surroundings add to a job file.
// The zero value is fine.
type LoadOptions struct {
	// Set holds overrides such as "model.kind=dlrm", "data.train=[a, b]" or
	// "data.columns[2].role=ignore", applied in order. Values are YAML.
	Set []string
	// Saved says that the file is the job that a model keeps, with every default written
	// out: see saved.go.
	Saved bool
	// Date is the job's date for templates, such as 2026-11-20 or, with an
	// hour, 2026-11-20T06, in the job's time zone. Empty: today.
	Date string
	// Env looks up environment variables; default os.LookupEnv.
	Env func(name string) (string, bool)
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// maxFileBytes bounds the size of a job file. Tens of thousands of columns fit, even with all their
// defaults, as config show prints them, which takes about ten times as many bytes.
const maxFileBytes = 16 << 20

// maxSavedBytes bounds that of a job as models keep it, in which every column has all defaults.
const maxSavedBytes = 16 * maxFileBytes

// Load reads the job file at path. The job that it returns is complete: defaults
// are filled in and templates are expanded. If anything is wrong with the content
// of the file or with the options, the error is a FaultsError that lists all of it.
// If the file cannot be read, the error wraps that of package os.
func Load(path string, opts LoadOptions) (*Job, error) {
	data, err := readJobFile(path)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	return Parse(path, data, opts)
}

// readJobFile reads a file of at most maxFileBytes. Of a longer file it reads one
// byte more, which shows that it is too long. Whatever path names, it does not wait
// for a pipe or a device, and it takes no more memory than a job file needs.
func readJobFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if what := notAFile(info.Mode()); what != "" {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is %s; a job file is a text file", what)}
	}
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// notAFile says what a file of this mode is if it is not a regular file, and
// returns "" if it is.
func notAFile(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// Parse is Load for a job file in memory; name is used in messages. All its
// errors are FaultsErrors.
func Parse(name string, data []byte, opts LoadOptions) (*Job, error) {
	l := newLoader(&Job{file: name}, opts)
	l.load(data)
	if err := l.err(); err != nil {
		return nil, err
	}
	l.job.notes = l.Notes
	if opts.Saved {
		return l.job, nil // all of it counts as given
	}
	l.job.given = map[string]bool{}
	for p := range l.Given {
		l.job.given[p] = true
	}
	return l.job, nil
}

// loader is the state of loading one job file into a Job.
type loader struct {
	*schema.Decoder
	opts LoadOptions
	job  *Job
}

// newLoader returns a loader, and fills in the defaults of the options.
func newLoader(job *Job, opts LoadOptions) *loader {
	if opts.Env == nil {
		opts.Env = os.LookupEnv
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l := &loader{Decoder: table.NewDecoder(job), opts: opts, job: job}
	l.Saved, l.Expand = opts.Saved, l.expandKey
	return l
}

// err is all that is wrong, or nil.
func (l *loader) err() error {
	if len(l.Faults) == 0 {
		return nil
	}
	return FaultsError(sortFaults(newFaults(l.job.file, l.Faults)))
}

func (l *loader) load(data []byte) {
	top := yamltree.Place{Line: 1, Column: 1}
	most := maxFileBytes
	if l.opts.Saved {
		most = maxSavedBytes
	}
	if len(data) > most {
		l.Fault(top, "", "the file is longer than a job file may be (%d bytes); does it hold data?", most)
		return
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		l.Fault(top, "", "the file is not UTF-8 text, which a job file must be")
		return
	}
	text := yamltree.Normalize(data)
	if depth := yamltree.Nesting(text); depth > yamltree.MaxNesting {
		l.Fault(top, "", "lists and mappings are nested %d deep; a job file needs fewer than ten levels", depth)
		return
	}
	root, faults := yamltree.Parse(text, yamltree.Place{})
	l.Faults = append(l.Faults, faults...)
	if len(faults) > 0 {
		return // after a syntax error nobody knows what the rest means
	}
	if l.Saved && len(l.opts.Set) > 0 {
		l.forgetDefaults(root, data)
	}
	root, faults = yamltree.Set(root, l.opts.Set)
	l.Faults = append(l.Faults, faults...)
	l.setDate(root)
	if root == nil {
		root = &yamltree.Node{Place: top, Kind: yamltree.Mapping}
	}
	if root.Kind != yamltree.Mapping {
		l.Fault(root.Place, "", "a job file is a mapping with the sections data, model, output and so on; this is %s", root.Describe())
		return
	}
	l.Decode(root)
	criteo := l.job.Data.Format == "criteo" && l.Sound("data.columns")
	if criteo {
		l.job.Data.Columns = appendCriteo(l.job.Data.Columns)
	}
	l.job.nameColumns()
	l.Complete()
	l.check()
	l.job.columnNames = nil
	if criteo && len(l.Faults) == 0 {
		l.orderCriteo()
	}
}
