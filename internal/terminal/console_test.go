package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// screen is as much of a terminal as the console needs: text, line ends, the
// cursor moved up, a line cleared. It never scrolls.
type screen struct {
	columns int
	rows    [][]byte
	x, y    int
}

func (s *screen) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\n':
			s.x = 0
			s.y++
		case p[i] == '\r':
			s.x = 0
		case bytes.HasPrefix(p[i:], []byte("\x1b[")):
			end := i + 2 + bytes.IndexAny(p[i+2:], "AKJ")
			n, _ := strconv.Atoi(string(p[i+2 : end]))
			switch p[end] {
			case 'A':
				if s.y -= n; s.y < 0 {
					return 0, fmt.Errorf("cursor above the screen")
				}
			case 'K':
				s.line()
				s.rows[s.y] = nil
			default:
				return 0, fmt.Errorf("escape sequence %q", p[i:end+1])
			}
			i = end
		default:
			if s.x == s.columns {
				s.x = 0
				s.y++
			}
			row := s.line()
			for len(row) <= s.x {
				row = append(row, ' ')
			}
			row[s.x] = p[i]
			s.rows[s.y] = row
			s.x++
		}
	}
	return len(p), nil
}

func (s *screen) line() []byte {
	for len(s.rows) <= s.y {
		s.rows = append(s.rows, nil)
	}
	return s.rows[s.y]
}

func (s *screen) text() string {
	var lines []string
	for _, r := range s.rows {
		lines = append(lines, string(r))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// resize rewraps every line that is longer than the new width.
func (s *screen) resize(columns int) {
	var rows [][]byte
	above := 0
	for y, r := range s.rows {
		for len(r) > columns {
			rows = append(rows, r[:columns:columns])
			r = r[columns:]
			if y < s.y {
				above++
			}
		}
		rows = append(rows, r)
	}
	s.columns, s.rows, s.y = columns, rows, s.y+above
}

func onScreen(s *screen, lines int) *Console {
	c := New(s, false)
	c.size = func() (int, int) { return s.columns, lines }
	return c
}

func wantScreen(t *testing.T, s *screen, want ...string) {
	t.Helper()
	if have := s.text(); have != strings.Join(want, "\n") {
		t.Errorf("screen:\n%s\nwant:\n%s", have, strings.Join(want, "\n"))
	}
}

func TestLogAndBlockShareTheTerminal(t *testing.T) {
	s := &screen{columns: 30}
	c := onScreen(s, 24)
	fmt.Fprintln(c, "log 1")
	c.Draw([]string{"training 10%", "stage a", "stage b"})
	wantScreen(t, s, "log 1", "training 10%", "stage a", "stage b")
	fmt.Fprintln(c, "log 2 is a line that is longer than the terminal")
	wantScreen(t, s, "log 1", "log 2 is a line that is longer", " than the terminal", "training 10%", "stage a", "stage b")
	c.Draw([]string{"saving"})
	wantScreen(t, s, "log 1", "log 2 is a line that is longer", " than the terminal", "saving")
	c.Notice("interrupted")
	wantScreen(t, s, "log 1", "log 2 is a line that is longer", " than the terminal", "aibox: interrupted", "saving")
	c.Draw(nil)
	c.Fail(4, "unexpected EOF")
	wantScreen(t, s, "log 1", "log 2 is a line that is longer", " than the terminal", "aibox: interrupted", "aibox: unexpected EOF")
	if s.x != 0 {
		t.Errorf("the cursor is left in column %d", s.x)
	}
}

func TestBlockFitsTheTerminal(t *testing.T) {
	s := &screen{columns: 12}
	c := onScreen(s, 3)
	fmt.Fprintln(c, "log")
	c.Draw([]string{"0123456789abcdef", "second", "third", "fourth"})
	wantScreen(t, s, "log", "0123456789a", "second")
	c.Draw(nil)
	wantScreen(t, s, "log")
}

func TestBlockIsFoundAfterResize(t *testing.T) {
	s := &screen{columns: 40}
	c := onScreen(s, 24)
	fmt.Fprintln(c, "log")
	c.Draw([]string{"a line of thirty-three characters", "another line of thirty-four chars."})
	s.resize(15)
	c.Draw([]string{"short"})
	wantScreen(t, s, "log", "short")
	s.resize(40)
	c.Draw([]string{"a line of thirty-three characters"})
	c.Leave()
	wantScreen(t, s, "log")
}

func TestJSONConsole(t *testing.T) {
	var out bytes.Buffer
	c := New(&out, true)
	c.Notice("interrupted")
	c.Fail(1, "two\nlines")
	c.Draw([]string{"never"})
	wantJSONLines(t, out.String())
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2: %s", n, out.String())
	}
	if !strings.Contains(out.String(), `"exit_code":1`) {
		t.Errorf("no exit code: %s", out.String())
	}
}

// TestFailNamesTheProgramOnce: mistakes on the command line begin with the command, which may be
// the program alone.
func TestFailNamesTheProgramOnce(t *testing.T) {
	var out bytes.Buffer
	c := New(&out, false)
	for _, reason := range []string{"no space", "aibox train: name the job file", "aibox: there is no flag -v"} {
		c.Fail(2, reason)
	}
	if want := "aibox: no space\naibox train: name the job file\naibox: there is no flag -v\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestControlCharacters: the name of a file does not command the terminal.
func TestControlCharacters(t *testing.T) {
	var out bytes.Buffer
	c := New(&out, false)
	c.Fail(4, "open a\x1b[31m\r\u009bé\tb:\nno such file")
	c.Notice("a\x1b]0;b\ac")
	if want := "aibox: open a\\x1b[31m\\x0d\\x9bé\tb:\nno such file\naibox: a\\x1b]0;b\\x07c\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// wantJSONLines fails unless every line of text is a JSON object.
func wantJSONLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("a line that is not JSON (%v): %q", err, line)
		}
	}
}
