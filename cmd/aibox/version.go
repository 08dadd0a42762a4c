package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/internal/kernel"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the versions of aibox and Go, and the instruction set of the matrix kernels",
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
	_, err := fmt.Fprintf(c.App.Writer, "aibox %s %s %s/%s kernels %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernels)
	return err
}
