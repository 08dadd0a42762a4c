package cmdline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// JSONFlag asks for a result as JSON.
func JSONFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

// PrintJSON writes v, indented.
func PrintJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// WriteLines writes lines without the spaces at their ends, which tables leave there.
func WriteLines(w io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
