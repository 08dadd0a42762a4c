package complaints

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"aibox/sparsetable/internal/bucketfile"
)

func TestComplaints(t *testing.T) {
	var log bytes.Buffer
	c := New(slog.New(slog.NewTextHandler(&log, nil)))
	var clock time.Time
	c.now = func() time.Time { return clock }
	said := func(err error, want string) {
		t.Helper()
		log.Reset()
		c.About(err)
		if got := log.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v: logged %q, want %q", err, got, want)
		}
	}
	full := func(free int64) error { return &bucketfile.NoSpaceError{Dir: "d", NeedBytes: 5, FreeBytes: free} }
	clock = clock.Add(time.Hour)
	said(full(1), "1 bytes left")
	said(full(2), "")
	clock = clock.Add(complainEvery - 1)
	said(full(3), "")
	clock = clock.Add(1)
	said(full(4), "times=3")
	said(errors.New("dead"), "dead")
	said(errors.New("dead"), "")
	said(errors.New("worse"), "worse")
	said(full(5), "5 bytes left")
	if strings.Contains(log.String(), "times=") {
		t.Errorf("counts another's: %s", log.String())
	}
}
