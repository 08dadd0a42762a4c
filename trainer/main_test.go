package trainer

import (
	"fmt"
	"os"
	"testing"

	"aibox/internal/hdfstest"
)

// logDir holds what tests share.
var logDir string

func TestMain(m *testing.M) {
	if code, is := crashChild(); is {
		os.Exit(code)
	}
	if code, is := nightChild(); is {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "aibox-trainer-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	logDir = dir
	code := hdfstest.Run(m)
	os.RemoveAll(dir)
	os.Exit(code)
}
