package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// errFailed says that at least one phase failed; the report tells which.
var errFailed = errors.New("some phases failed, see above")

// command runs the command line args, or the job of a child process.
func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == childArg {
		return runChild(ctx, args[1], out)
	}
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	return c.runAll(ctx, out)
}

func (c *config) runAll(ctx context.Context, out io.Writer) (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "bench-table-"); err != nil {
			return err
		}
		if !c.keep {
			defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
		}
	} else if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return err
	}
	rep := report{
		Keys: c.keys, Batches: c.batches, Lookups: c.lookups, S: c.s, Seed: c.seed, RowBytes: c.layout.Bytes(),
		Getters: c.getters, Announce: c.announce, Policy: strings.Join(c.policies, ", "), TrainMS: c.trainMS, SnapshotEvery: c.snapshotEvery, CPUs: runtime.NumCPU(), Drivers: map[string]string{},
	}
	for _, name := range c.stores() {
		rep.Drivers[name] = c.driver(name).about
	}
	if err := c.fill(ctx, &rep); err != nil {
		return err
	}
	compare(rep.Results)
	if err := rep.print(out); err != nil {
		return err
	}
	if c.jsonFile != "" {
		if err := rep.write(c.jsonFile); err != nil {
			return err
		}
	}
	for _, r := range rep.Results {
		if r.Error != "" || r.DigestDiffers {
			return errFailed
		}
	}
	return nil
}

// fill measures everything that the report tells.
func (c *config) fill(ctx context.Context, rep *report) (err error) {
	var device *deviceMeter
	if c.deviceSeconds > 0 {
		if device = c.newDeviceMeter(); device != nil {
			defer func() { err = errors.Join(err, device.close()) }()
			device.measure(ctx, "before", blockBytes)
		}
	}
	for _, x := range c.cells() {
		if err := c.run(ctx, x, func(r result) {
			progress(os.Stderr, r)
			rep.Results = append(rep.Results, r)
		}); err != nil {
			return err
		}
	}
	if device != nil {
		device.finish(ctx, rep.Results)
		rep.Device = device.rates
	}
	return nil
}
