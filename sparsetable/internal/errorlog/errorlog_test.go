package errorlog

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"aibox/sparsetable/internal/bucketfile"
)

func TestRecurringErrorsAreLoggedSeldom(t *testing.T) {
	var log bytes.Buffer
	c := New(slog.New(slog.NewTextHandler(&log, nil)))
	var clock time.Time
	c.now = func() time.Time { return clock }
	logged := func(err error, want string) {
		t.Helper()
		log.Reset()
		c.Log(err)
		if got := log.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v: logged %q, want %q", err, got, want)
		}
	}
	full := func(free int64) error { return &bucketfile.NoSpaceError{Dir: "d", NeedBytes: 5, FreeBytes: free} }
	clock = clock.Add(time.Hour)
	logged(full(1), "1 bytes left")
	logged(full(2), "")
	clock = clock.Add(interval - 1)
	logged(full(3), "")
	clock = clock.Add(1)
	logged(full(4), "times=3")
	logged(errors.New("dead"), "dead")
	logged(errors.New("dead"), "")
	logged(errors.New("worse"), "worse")
	logged(full(5), "5 bytes left")
	if strings.Contains(log.String(), "times=") {
		t.Errorf("the log counts the recurrences of another error: %s", log.String())
	}
}
