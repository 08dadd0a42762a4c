package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aibox/trainer"
)

// display shows a job's progress on the console: a block redrawn in place on a
// terminal, elsewhere a line now and then, which counts as log of level info.
type display struct {
	console *console
	watch   func(now time.Time) frame
	log     *slog.Logger
	ended   chan struct{} // closed by stop
	done    chan struct{} // closed when the goroutine has ended
	once    sync.Once
}

// frame is one look at what is shown, in each of its forms; the zero value is
// nothing to show.
type frame struct {
	block func(columns int) []string // on a terminal
	line  func() string
	attrs func() []any // of a line of log in JSON
}

const (
	redrawInterval = 200 * time.Millisecond // smooth to the eye, no load
	lineInterval   = 10 * time.Second       // a cron mail of a night stays readable
)

// startDisplay starts showing status.
func startDisplay(c *console, status *trainer.Status, log *slog.Logger) *display {
	return startWatching(c, watchStatus(status), log)
}

// startWatching starts showing what watch returns.
func startWatching(c *console, watch func(now time.Time) frame, log *slog.Logger) *display {
	d := &display{console: c, watch: watch, log: log, ended: make(chan struct{}), done: make(chan struct{})}
	interval := lineInterval
	if c.size != nil {
		interval = redrawInterval
	}
	go d.run(interval)
	return d
}

// stop clears the block and ends the display. Calling it again does nothing.
func (d *display) stop() {
	d.once.Do(func() {
		close(d.ended)
		<-d.done
		d.console.draw(nil)
	})
}

func (d *display) run(interval time.Duration) {
	defer close(d.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-d.ended:
			return
		case now := <-tick.C:
			if f := d.watch(now); f.block != nil {
				d.show(f)
			}
		}
	}
}

// watchStatus shows a job.
func watchStatus(status *trainer.Status) func(now time.Time) frame {
	var rate rateMeter
	return func(now time.Time) frame {
		v := status.View()
		if v.Phase == "" {
			return frame{}
		}
		rate.update(&v, now)
		return jobFrame(&v, rate.rate)
	}
}

func jobFrame(v *trainer.View, rate float64) frame {
	return frame{
		block: func(columns int) []string { return block(v, rate, columns) },
		line:  func() string { return plainLine(v, rate) },
		attrs: func() []any { return progressAttrs(v, rate) },
	}
}

func (d *display) show(f frame) {
	switch {
	case d.console.size != nil:
		columns, _ := d.console.size()
		d.console.draw(f.block(columns))
	case d.console.json:
		d.log.Info("progress", f.attrs()...)
	case d.log.Enabled(context.Background(), slog.LevelInfo):
		fmt.Fprintln(d.console, f.line())
	}
}
