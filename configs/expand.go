package configs

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"aibox/configs/internal/yamltree"
)

// Dated returns a job that has nothing but a date and its time zone. It is for
// commands without a job file, whose arguments may hold templates, too. Of opts.Set
// it uses only timezone.
func Dated(opts LoadOptions) (*Job, error) {
	l := newLoader("", &opts)
	zone := slices.DeleteFunc(slices.Clone(opts.Set), func(set string) bool { return !strings.HasPrefix(strings.TrimSpace(set), "timezone=") })
	root, faults := yamltree.Set(nil, zone)
	l.report(faults)
	l.setDate(root)
	if root != nil {
		l.mapping("", "", root, reflect.ValueOf(l.job).Elem())
	}
	if l.job.Timezone == "" {
		l.job.Timezone = l.job.zone
	}
	l.checkTimezone()
	if len(l.faults) > 0 {
		return nil, FaultsError(sortFaults(l.faults))
	}
	return l.job, nil
}

// Expand replaces the templates in an argument of the command line as in the job
// file: {{date}} becomes the job's date. Where ".." follows a symbolic link in it, it goes up from
// where that leads. where names the argument in errors, which
// are FaultsErrors.
func (j *Job) Expand(where, text string) (string, error) {
	if !strings.Contains(text, "{{") && !strings.Contains(text, "${") {
		return followUpward(text), nil // a $NAME or ~ is left alone here: expanding it is the shell's work
	}
	dated := *j // a copy, because expanding a date sets Dated
	l := &loader{job: &dated, opts: LoadOptions{Env: os.LookupEnv, Now: time.Now}, bad: map[string]bool{}}
	expanded, ok := l.expand("", &yamltree.Node{Place: yamltree.Place{Set: where}, Kind: yamltree.Scalar, Text: text, Quoted: true})
	if !ok {
		return "", FaultsError(sortFaults(l.faults))
	}
	return followUpward(expanded), nil
}
