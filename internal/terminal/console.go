// Package terminal writes standard error and standard output of a long-running program.
// On standard error, a log and a progress display share a terminal, or every line is
// JSON. On standard output, no failed write of a result goes unnoticed.
package terminal

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Console is standard error. Everything that goes there goes through a Console: the
// log, the progress display, the notice of a signal and the error at the end. So none
// of them overwrites another, and with --log-format json every line is JSON.
//
// On a terminal the progress is a block of lines that is redrawn in place below
// the log:
//
//	time=… level=INFO msg="epoch trained" …     scrolls up
//	training  [####------]  40.0%  …            the block
//	1234 examples  …
//	▮                                           cursor, column 0
type Console struct {
	// size returns the columns and lines of the terminal. It is nil if out is not a
	// terminal, or one that cannot move its cursor.
	size func() (columns, lines int)
	json bool

	mu struct {
		sync.Mutex
		out   io.Writer
		block []string // lines of the block on the screen now
	}
}

// New returns a console that writes to out.
func New(out io.Writer, json bool) *Console {
	c := &Console{json: json}
	c.mu.out = out
	if f, ok := out.(*os.File); ok && !json && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		c.size = func() (int, int) {
			columns, lines, err := term.GetSize(int(f.Fd()))
			if err != nil || columns <= 0 || lines <= 0 {
				return 80, 24
			}
			return columns, lines
		}
	}
	return c
}

// Write writes whole lines, such as those of a log, above the block.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	block := c.mu.block
	text := c.eraseLocked()
	text = append(text, p...)
	text = c.drawLocked(text, block)
	if _, err := c.mu.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw replaces the block by lines; no lines remove it. Lines that do not fit the
// terminal are cut off: a wrapped line would take more rows than are erased later.
func (c *Console) Draw(lines []string) {
	if c.size == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(lines) == 0 && len(c.mu.block) == 0 {
		return
	}
	_, _ = c.mu.out.Write(c.drawLocked(c.eraseLocked(), lines)) // a failure of the display must not end the program
}

func (c *Console) drawLocked(text []byte, lines []string) []byte {
	if len(lines) == 0 {
		return text
	}
	columns, height := c.size()
	lines = lines[:min(len(lines), max(1, height-1))]
	c.mu.block = nil
	for _, line := range lines {
		if utf8.RuneCountInString(line) >= columns {
			line = string([]rune(line)[:max(0, columns-1)])
		}
		c.mu.block = append(c.mu.block, line)
		text = append(append(text, line...), '\n')
	}
	return text
}

// eraseLocked returns the bytes that clear the block and put the cursor where
// it began. It clears line by line: when the whole screen is cleared at once,
// some terminals keep the old one in their history.
func (c *Console) eraseLocked() []byte {
	if len(c.mu.block) == 0 {
		return nil
	}
	// If the terminal has been made narrower since, it has wrapped the lines.
	columns, _ := c.size()
	rows := 0
	for _, line := range c.mu.block {
		rows += max(1, (utf8.RuneCountInString(line)+columns-1)/columns)
	}
	c.mu.block = nil
	text := fmt.Appendf(nil, "\r\x1b[%dA", rows)
	for range rows {
		text = append(text, "\x1b[2K\n"...)
	}
	return fmt.Appendf(text, "\x1b[%dA", rows)
}

// Notice shows a message that is not part of the log.
func (c *Console) Notice(text string) {
	if c.json {
		c.Logger(slog.LevelInfo).Warn(text)
		return
	}
	fmt.Fprintf(c, "aibox: %s\n", shown(text))
}

// Fail reports why the program ends, and with which exit code.
func (c *Console) Fail(code int, reason string) {
	if c.json {
		c.Logger(slog.LevelInfo).Error(reason, "exit_code", code)
		return
	}
	if !strings.HasPrefix(reason, "aibox ") && !strings.HasPrefix(reason, "aibox: ") { // mistakes on the command line begin with the command
		reason = "aibox: " + reason
	}
	fmt.Fprintf(c, "%s\n", shown(reason))
}

// shown escapes control characters other than white space, which a terminal might interpret: file
// names may contain some.
func shown(text string) string {
	obeyed := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if obeyed(r) {
			fmt.Fprintf(&out, `\x%02x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Leave clears the block before the process ends at once. It does not wait for a
// write that hangs.
func (c *Console) Leave() {
	if c.mu.TryLock() {
		if text := c.eraseLocked(); len(text) > 0 {
			_, _ = c.mu.out.Write(text)
		}
		c.mu.Unlock()
	}
}

// Logger returns a logger to the console, for records of this level and above.
func (c *Console) Logger(level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if c.json {
		return slog.New(slog.NewJSONHandler(c, o))
	}
	return slog.New(slog.NewTextHandler(c, o))
}
