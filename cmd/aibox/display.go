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
	status  *trainer.Status
	log     *slog.Logger
	ended   chan struct{} // closed by stop
	done    chan struct{} // closed when the goroutine has ended
	once    sync.Once
}

const (
	redrawInterval = 200 * time.Millisecond // smooth to the eye, no load
	lineInterval   = 10 * time.Second       // a cron mail of a night stays readable
)

// startDisplay starts showing status.
func startDisplay(c *console, status *trainer.Status, log *slog.Logger) *display {
	d := &display{console: c, status: status, log: log, ended: make(chan struct{}), done: make(chan struct{})}
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
	var rate rateMeter
	for {
		select {
		case <-d.ended:
			return
		case now := <-tick.C:
			if v := d.status.View(); v.Phase != "" {
				rate.update(&v, now)
				d.show(&v, rate.rate)
			}
		}
	}
}

func (d *display) show(v *trainer.View, rate float64) {
	switch {
	case d.console.size != nil:
		columns, _ := d.console.size()
		d.console.draw(block(v, rate, columns))
	case d.console.json:
		d.log.Info("progress", progressAttrs(v, rate)...)
	case d.log.Enabled(context.Background(), slog.LevelInfo):
		fmt.Fprintln(d.console, plainLine(v, rate))
	}
}
