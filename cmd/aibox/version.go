package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"aibox/gpu/cuda"
	"aibox/internal/cliargs"
	"aibox/internal/kernel"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the versions of aibox and Go, the instruction set of the matrix kernels, and the NVIDIA devices",
		Action: func(c *cli.Context) error {
			if err := cliargs.NoArguments(c); err != nil {
				return err
			}
			return printVersion(c)
		},
	}
}

func printVersion(c *cli.Context) error {
	kernels := kernel.Level()
	if kernel.HasBF16() {
		kernels += " with bf16"
	}
	if _, err := fmt.Fprintf(c.App.Writer, "aibox %s %s %s/%s kernels %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernels); err != nil {
		return err
	}
	for _, line := range cuda.Describe() {
		if _, err := fmt.Fprintf(c.App.Writer, "devices: %s\n", line); err != nil {
			return err
		}
	}
	return nil
}
