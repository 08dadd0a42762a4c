package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// report prints events as `go test` without -v prints them, and notes the skipped tests.
type report struct {
	out     io.Writer
	output  map[string]map[string][]string // of each test, by package; "" is the package's own
	failed  map[string][]string            // tests, by package
	skipped map[string][]string            // tests with their packages, by reason
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string]map[string][]string{}, failed: map[string][]string{}, skipped: map[string][]string{}}
}

// read prints events until they end.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(r.out, "%s", line) // it is not from a test
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	tests := r.output[e.Package]
	switch e.Action {
	case "start":
		r.output[e.Package] = map[string][]string{}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if tests != nil {
			tests[e.Test] = append(tests[e.Test], e.Output)
		}
	case "skip":
		if e.Test != "" {
			reason := reasonOf(tests[e.Test])
			r.skipped[reason] = append(r.skipped[reason], e.Package+" "+e.Test)
			return
		}
		r.end(e.Package, false)
	case "fail":
		if e.Test != "" {
			r.failed[e.Package] = append(r.failed[e.Package], e.Test)
			return
		}
		r.end(e.Package, true)
	case "pass":
		if e.Test == "" {
			r.end(e.Package, false)
			return
		}
		delete(tests, e.Test) // the output of a test that passed is not printed
	}
}

// end prints the result of a package: its own line, and all output of tests that
// failed.
func (r *report) end(pkg string, failed bool) {
	tests := r.output[pkg]
	delete(r.output, pkg)
	if failed {
		names := r.failed[pkg]
		slices.Sort(names)
		for name := range tests { // a test that did not end, as when the process dies
			if name != "" && !slices.Contains(names, name) && reasonOf(tests[name]) != "" {
				names = append(names, name)
			}
		}
		for _, name := range names {
			for _, line := range tests[name] {
				if !strings.HasPrefix(line, "=== ") {
					fmt.Fprint(r.out, line)
				}
			}
		}
	}
	for _, line := range tests[""] {
		if failed || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") || strings.HasPrefix(line, "\t") {
			fmt.Fprint(r.out, line)
		}
	}
}

// place matches the file and line in front of what a test logs.
var place = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// reasonOf returns what a test logged, in one line.
func reasonOf(output []string) string {
	var words []string
	for _, line := range output {
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(strings.TrimSpace(line), "--- ") {
			continue
		}
		words = append(words, strings.Fields(place.ReplaceAllString(line, ""))...)
	}
	return strings.Join(words, " ")
}

// namedTests is the largest number of tests that are named for each reason.
const namedTests = 3

// printSkips says what was skipped, by reason.
func (r *report) printSkips() {
	if len(r.skipped) == 0 {
		fmt.Fprintln(r.out, "\nNo test was skipped.")
		return
	}
	fmt.Fprintln(r.out, "\nSkipped tests, and why:")
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[reason]
		names := strings.Join(tests[:min(len(tests), namedTests)], ", ")
		if more := len(tests) - namedTests; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		if reason == "" {
			reason = "no reason is given"
		}
		fmt.Fprintf(r.out, "  %3d  %s\n       %s\n", len(tests), reason, names)
	}
}
