package hdfstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/filelock"
	"aibox/internal/testtools"
)

// unavailable skips the test, or fails it if integration tests must run.
func unavailable(t testing.TB, format string, args ...any) {
	t.Helper()
	testtools.Unavailable(t, " (testdata/hdfs/install.sh lists what HDFS tests need)", format, args...)
}

// tool finds a program. Debian installs those of the KDC in /usr/sbin, which is not in
// every user's PATH.
func tool(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

func requireTools(t testing.TB, names ...string) {
	t.Helper()
	var missing []string
	for _, n := range names {
		if _, err := tool(n); err != nil {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		unavailable(t, "these programs are not installed: %s", strings.Join(missing, ", "))
	}
}

// projectDir returns testdata/hdfs, found from the test's working directory.
func projectDir() (string, error) {
	dir, err := testtools.ModuleDir()
	return filepath.Join(dir, "testdata", "hdfs"), err
}

// buildClassPath builds the mini cluster once for all test processes and
// returns its class path.
var buildClassPath = sync.OnceValues(func() (string, error) {
	target, err := build("pom.xml", "", "src/main/java/TestCluster.java")
	return filepath.Join(target, "classes") + ":" + filepath.Join(target, "lib", "*"), err
})

// kmsClassPath is buildClassPath for the key management server.
var kmsClassPath = sync.OnceValues(func() (string, error) {
	target, err := build("kms.xml", "kms")
	return filepath.Join(target, "lib", "*"), err
})

// build runs Maven for a project file and returns the directory of the result:
// testdata/hdfs/target, or the directory into in it. It does nothing if that was built from the
// same sources. A lock file keeps test processes of several packages from building at the same
// time.
func build(project, into string, sources ...string) (string, error) {
	dir, err := projectDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(dir, "target", into)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return "", err
	}
	lock, err := filelock.Wait(filepath.Join(target, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() // releases the lock

	hash := sha256.New()
	for _, name := range append([]string{project}, sources...) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		hash.Write(data)
	}
	stamp := hex.EncodeToString(hash.Sum(nil))
	stampFile := filepath.Join(target, ".stamp")
	if old, err := os.ReadFile(stampFile); err == nil && string(old) == stamp {
		return target, nil
	}
	for try := 1; ; try++ { // a download may fail
		mvn := exec.Command("mvn", "-q", "-B", "-f", project, "compile")
		mvn.Dir = dir
		out, err := mvn.CombinedOutput()
		if err == nil {
			return target, os.WriteFile(stampFile, []byte(stamp), 0o644)
		}
		if try == 3 {
			return "", fmt.Errorf("mvn compile of %s in %s: %w\n%s", project, dir, err, tail(out, 2000))
		}
		time.Sleep(10 * time.Second)
	}
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
