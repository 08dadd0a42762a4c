package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"aibox/trainer"
)

// display shows a job's progress on standard error: a block of lines redrawn
// in place on a terminal, a plain line now and then elsewhere. It is also the
// writer of the log, so that log lines and the block do not overwrite each
// other.
type display struct {
	status *trainer.Status
	ended  chan struct{} // closed by stop
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once

	mu struct {
		sync.Mutex
		out   io.Writer
		lines int // lines of the block on the screen now
	}
	width func() int // columns of the terminal; nil when not a terminal
}

const (
	redrawInterval = 200 * time.Millisecond // smooth to the eye, no load
	lineInterval   = 10 * time.Second       // a cron mail of a night stays readable
)

// startDisplay starts showing status on out.
func startDisplay(out io.Writer, status *trainer.Status) *display {
	d := &display{status: status, ended: make(chan struct{}), done: make(chan struct{})}
	d.mu.out = out
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		d.width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil || w < 20 {
				return 80
			}
			return w
		}
	}
	go d.run()
	return d
}

// stop clears the block and ends the display. Calling it again does nothing.
func (d *display) stop() {
	d.once.Do(func() {
		close(d.ended)
		<-d.done
		d.mu.Lock()
		defer d.mu.Unlock()
		d.eraseLocked()
	})
}

// Write writes log lines above the block.
func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.eraseLocked()
	return d.mu.out.Write(p)
}

func (d *display) run() {
	defer close(d.done)
	interval := lineInterval
	if d.width != nil {
		interval = redrawInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var rate rateMeter
	for {
		select {
		case <-d.ended:
			return
		case <-tick.C:
		}
		v := d.status.View()
		if v.Phase == "" {
			continue
		}
		rate.update(&v)
		d.mu.Lock()
		if d.width != nil {
			d.drawLocked(block(&v, rate.perSecond(), d.width()))
		} else {
			fmt.Fprintln(d.mu.out, plainLine(&v, rate.perSecond()))
		}
		d.mu.Unlock()
	}
}

func (d *display) drawLocked(text string) {
	var b bytes.Buffer
	if d.mu.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", d.mu.lines)
	}
	b.WriteString(text)
	d.mu.lines = strings.Count(text, "\n")
	_, _ = d.mu.out.Write(b.Bytes()) // a lost display is no reason to fail
}

func (d *display) eraseLocked() {
	if d.mu.lines > 0 {
		fmt.Fprintf(d.mu.out, "\x1b[%dA\r\x1b[J", d.mu.lines)
		d.mu.lines = 0
	}
}
