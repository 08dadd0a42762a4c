package shim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"aibox/gpu/kernels"
	"aibox/internal/testtools"
)

// errNoCompiler says that there is no g++.
var errNoCompiler = errors.New("g++ is not installed")

// build compiles the sources and the host of the kernels into a program in dir.
func build(dir string) (program string, err error) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return "", errNoCompiler
	}
	from, err := sources()
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(from, "*.cu"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, f := range append([]string{filepath.Join(from, "shim", "host.h")}, files...) {
		fmt.Fprintf(&text, "#include %q\n", f)
	}
	text.WriteString("int main() {\n\tserve({\n")
	for _, name := range kernels.Names() {
		fmt.Fprintf(&text, "\t\t{%q, kernel(%s)},\n", name, name)
	}
	text.WriteString("\t});\n}\n")
	file := filepath.Join(dir, "shim.cc")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "shim")
	// Nothing may be fused that is not fused on a device.
	c := exec.Command(compiler, "-std=c++17", "-O2", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-ffp-contract=off", "-fsanitize=alignment", "-fno-sanitize-recover=alignment", "-o", program, file)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", c, err, out)
	}
	return program, nil
}

// sources returns the directory of the sources, found from the working directory of a test.
func sources() (string, error) {
	dir, err := testtools.ModuleDir()
	return filepath.Join(dir, "gpu", "kernels"), err
}
