// Command policies prints the hit ratios of cache policies on a synthetic
// trace; see package hitratio and -help.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"aibox/sparsetable/hitratio"
)

func main() {
	switch err := hitratio.Run(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}
