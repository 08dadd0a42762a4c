// Package testtools has helpers for tests that need programs from outside of the Go toolchain.
package testtools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// RequireEnv is the environment variable that turns skips into failures when
// it is "1".
const RequireEnv = "AIBOX_REQUIRE_INTEGRATION"

// Unavailable skips the test, or fails it where integration tests must run. hint says what to do,
// in the skip.
func Unavailable(t testing.TB, hint, format string, args ...any) {
	t.Helper()
	msg := fmt.Sprintf(format, args...)
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf("%s=1, but %s", RequireEnv, msg)
	}
	t.Skipf("SKIP: %s%s", msg, hint)
}

// ModuleDir is the directory of the module, found from the working directory of a test.
func ModuleDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}
