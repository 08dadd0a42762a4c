//go:build !nvidia

package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/testtools"
)

// TestHeaders: make build-cuda compiles with the headers that NVIDIA's installer puts where no
// compiler looks by itself, and says of those of CUDA 13 that they do not fit.
func TestHeaders(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		testtools.Unavailable(t, "", "make is not installed")
	}
	for version, want := range map[int]string{12090: "-I%[1]s/include/ -L%[1]s/include/../lib64/stubs", 13000: "does not compile with %s/include/cuda.h"} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			dir := t.TempDir()
			header, compiler := filepath.Join(dir, "include", "cuda.h"), filepath.Join(dir, "go")
			for _, err := range []error{
				os.Mkdir(filepath.Dir(header), 0o700),
				os.WriteFile(header, fmt.Appendf(nil, "#define CUDA_VERSION %d\n", version), 0o600),
				os.WriteFile(compiler, []byte("#!/bin/sh\necho ${CGO_CFLAGS##* } ${CGO_LDFLAGS##* }\nexit 1\n"), 0o700),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("make", "-C", "../..", "build-cuda", "CUDA_H="+header, "GO="+compiler, "BIN="+filepath.Join(dir, "bin")).CombinedOutput()
			if want := fmt.Sprintf(want, dir); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, want %q:\n%s", err, want, out)
			}
		})
	}
}
