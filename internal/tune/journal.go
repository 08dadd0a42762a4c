package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// JournalName is the name of the journal in the directory of a search.
const JournalName = "trials.jsonl"

// Journal is a file with a line for the search and one for each result. A nil Journal
// has nothing and keeps nothing.
type Journal struct {
	file    *os.File
	results []*Result
}

// DifferentError says that a journal is of another search.
type DifferentError struct {
	Path string
	What string // differs
}

func (e *DifferentError) Error() string {
	return fmt.Sprintf("%s is of another search: %s", e.Path, e.What)
}

// OpenJournal opens the journal in dir, or makes one. search describes the search as values by
// name, each as text; the error is a *DifferentError if the journal has others. The caller holds a lock,
// so that no other process has the journal open.
func OpenJournal(dir string, search map[string]string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, JournalName)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1] // the last line may be half of one, if the process was killed
	j := new(Journal)
	var earlier map[string]string
	for i, line := range bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")) {
		var into any = &earlier
		if i > 0 {
			j.results = append(j.results, new(Result))
			into = j.results[i-1]
		}
		if len(whole) == 0 {
			break
		}
		if err := json.Unmarshal(line, into); err != nil {
			return nil, &DifferentError{path, fmt.Sprintf("line %d is not a line of a journal (%v)", i+1, err)}
		}
	}
	if len(whole) > 0 {
		if what := different(earlier, search); what != "" {
			return nil, &DifferentError{path, what}
		}
	}
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666); err != nil {
		return nil, err
	}
	err = j.file.Truncate(int64(len(whole)))
	if err == nil && len(whole) == 0 {
		err = j.write(search)
	}
	if err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

// different says in what two searches differ.
func different(a, b map[string]string) string {
	for name, value := range b {
		if a[name] != value {
			return fmt.Sprintf("its %s was %s and is %s now", name, a[name], value)
		}
	}
	return ""
}

// Results is how many results the journal has.
func (j *Journal) Results() int { return len(j.results) }

// find returns the result of a trial. A result with the same number but other settings, which
// another version of aibox may have drawn, is of another trial.
func (j *Journal) find(t Trial, round int) *Result {
	if j == nil {
		return nil
	}
	for _, r := range j.results {
		if r.Trial == t.ID && r.Round == round && slices.Equal(r.Settings, t.Settings) {
			return r
		}
	}
	return nil
}

func (j *Journal) add(r *Result) error {
	if j == nil {
		return nil
	}
	j.results = append(j.results, r)
	return j.write(r)
}

// write appends one line, which is on disk when it returns.
func (j *Journal) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
