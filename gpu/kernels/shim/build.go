package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checks is what g++ checks of numbers and addresses; check.cc has what it calls.
const checks = "alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow"

// build compiles sources with kernels of these names, and what runs them, which is in directory
// host, into a program in dir.
func build(compiler, host string, sources, names []string, dir string) (program string, err error) {
	var text strings.Builder
	for _, f := range append([]string{filepath.Join(host, "kernel.h")}, sources...) {
		fmt.Fprintf(&text, "#include %q\n", f)
	}
	text.WriteString("const std::map<std::string, Kernel> kernels = {\n")
	for _, name := range names {
		fmt.Fprintf(&text, "\t{%q, kernel(%s)},\n", name, name)
	}
	text.WriteString("};\n")
	file, object, program := filepath.Join(dir, "kernels.cc"), filepath.Join(dir, "kernels.o"), filepath.Join(dir, "kernels")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	// Nothing may be fused that is not fused on a device. Places in the program have 32 bits (check.cc).
	flags := strings.Fields("-std=c++17 -O2 -g -no-pie -fno-pie -Wall -Werror -Wno-unknown-pragmas -ffp-contract=off")
	for _, more := range [][]string{
		{"-fsanitize=thread," + checks, "-fno-sanitize-recover=" + checks, "-c", "-o", object, file},
		// Linked without the libraries of these checks.
		{"-o", program, object, filepath.Join(host, "host.cc"), filepath.Join(host, "check.cc")},
	} {
		c := exec.Command(compiler, append(more, flags...)...)
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", c, err, out)
		}
	}
	return program, nil
}
