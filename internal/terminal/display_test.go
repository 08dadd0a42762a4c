package terminal

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// someFrame is a look at something.
var someFrame = Frame{
	Block: func(int) []string { return []string{"half done", "[##--]"} },
	Line:  func() string { return "half done" },
	Attrs: func() []any { return []any{"share", 0.5} },
}

// TestFramesInJSON: each is one line, whose attributes tell the same.
func TestFramesInJSON(t *testing.T) {
	var out bytes.Buffer
	c := New(&out, true)
	d := &Display{console: c, log: c.Logger(0)}
	d.show(someFrame)
	wantJSONLines(t, out.String())
	if s := out.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"share":0.5`) {
		t.Errorf("progress in JSON: %s", s)
	}
}

func TestPlainProgressIsLogOfLevelInfo(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		lines int
	}{{slog.LevelInfo, 1}, {slog.LevelDebug, 1}, {slog.LevelWarn, 0}} {
		var out bytes.Buffer
		con := New(&out, false)
		d := &Display{console: con, log: con.Logger(c.level)}
		d.show(someFrame)
		if n := strings.Count(out.String(), "\n"); n != c.lines {
			t.Errorf("level %v: %d lines of progress, want %d", c.level, n, c.lines)
		}
	}
}

func TestDisplayEndsCleanly(t *testing.T) {
	s := &screen{columns: 80}
	c := onScreen(s, 24)
	d := &Display{console: c, watch: func(time.Time) Frame { return Frame{} }, log: c.Logger(0), ended: make(chan struct{}), done: make(chan struct{})}
	go d.run(time.Millisecond)
	d.show(someFrame)
	d.Stop()
	d.Stop()
	if s.text() != "" {
		t.Errorf("the display leaves %q", s.text())
	}
}
