package terminal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aibox/internal/panics"
)

// Display shows progress on the console. On a terminal it redraws a block in place;
// elsewhere it writes a line every ten seconds, if the log has level info.
type Display struct {
	console *Console
	watch   func(now time.Time) Frame
	log     *slog.Logger
	ended   chan struct{} // closed by Stop
	done    chan struct{} // closed when the goroutine has ended
	once    sync.Once
}

// Frame is what is shown at one time, in each of its forms. The zero value means that
// there is nothing to show.
type Frame struct {
	Block func(columns int) []string // on a terminal
	Line  func() string
	Attrs func() []any // attributes of a log record in JSON
}

const (
	redrawInterval = 200 * time.Millisecond // it looks smooth and costs little
	lineInterval   = 10 * time.Second       // the mail of a nightly cron job stays readable
)

// Watch starts a display, which calls watch for each frame that it shows.
func Watch(c *Console, watch func(now time.Time) Frame, log *slog.Logger) *Display {
	d := &Display{console: c, watch: watch, log: log, ended: make(chan struct{}), done: make(chan struct{})}
	interval := lineInterval
	if c.size != nil {
		interval = redrawInterval
	}
	go d.run(interval)
	return d
}

// Stop clears the block and ends the display. Calling it again does nothing.
func (d *Display) Stop() {
	d.once.Do(func() {
		close(d.ended)
		<-d.done
		d.console.Draw(nil)
	})
}

func (d *Display) run(interval time.Duration) {
	defer close(d.done)
	defer panics.Exit("the display")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-d.ended:
			return
		case now := <-tick.C:
			if f := d.watch(now); f.Block != nil {
				d.show(f)
			}
		}
	}
}

func (d *Display) show(f Frame) {
	switch {
	case d.console.size != nil:
		columns, _ := d.console.size()
		d.console.Draw(f.Block(columns))
	case d.console.json:
		d.log.Info("progress", f.Attrs()...)
	case d.log.Enabled(context.Background(), slog.LevelInfo):
		fmt.Fprintln(d.console, f.Line())
	}
}
