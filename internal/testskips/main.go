// Command testskips runs `go test` with its own arguments, prints the output of
// `go test`, and at the end says which tests were skipped and why. `go test` alone
// prints "ok" even for a package whose tests were all skipped. The exit code is that of
// `go test`.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

func run(args []string, out io.Writer) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testskips:", err)
		return 1
	}
	r := newReport(out)
	readErr := r.read(events)
	err = cmd.Wait()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		fmt.Fprintln(out, "FAIL") // as go test does
	case err != nil || readErr != nil:
		fmt.Fprintln(os.Stderr, "testskips:", errors.Join(err, readErr))
	}
	r.printSkips()
	if code := cmd.ProcessState.ExitCode(); code != 0 || readErr == nil {
		return code
	}
	return 1
}
