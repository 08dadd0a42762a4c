package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/hdfstest"
)

// TestHDFS checks only how HDFS is reached through this package. The tests of its client check the
// rest.
func TestHDFS(t *testing.T) {
	c := hdfstest.Start(t, hdfstest.Config{DataNodes: 2, Conf: map[string]string{"dfs.blocksize": "1048576"}})
	s := New(Options{HDFS: HDFSOptions{ConfDir: c.ConfDir(), TimeoutMs: 60_000, RetryMs: 600_000}})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("Files", func(t *testing.T) {
		text := logText(100_000)
		c.PutBytes(t, gzipped(t, text), "/files/a.csv.gz", hdfstest.PutOptions{})
		upper := strings.Replace(c.URI("/files/*.gz"), "hdfs", "HDFS", 1) // a scheme is the same in upper case
		files, err := s.Expand(t.Context(), []string{upper})
		if err != nil || len(files) != 1 || files[0].URI != c.URI("/files/a.csv.gz") || files[0].Compression != Gzip || files[0].ModTime.IsZero() {
			t.Fatalf("listed as %+v, %v", files, err)
		}
		r, err := s.OpenRange(t.Context(), files[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Decompress(files[0].Compression, r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if err := errors.Join(d.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		gone := files[0]
		gone.URI += "x"
		var missing *Error
		if _, err := s.OpenRange(t.Context(), gone, 0); !errors.As(err, &missing) || missing.Kind != ErrNotFound || missing.Hint == "" {
			t.Errorf("a file that was removed: %v", err)
		}
	})
	t.Run("Directory", func(t *testing.T) {
		d, err := s.Directory(c.URI("/directory"))
		if err != nil {
			t.Fatal(err)
		}
		directorySuite(t, d)
	})
}

// pairConf is a configuration directory with the name service "pair".
func pairConf(t *testing.T, first, second string) string {
	t.Helper()
	dir := t.TempDir()
	var conf bytes.Buffer
	conf.WriteString("<configuration>")
	for key, value := range map[string]string{
		"dfs.nameservices": "pair", "dfs.ha.namenodes.pair": "nn1,nn2",
		"dfs.namenode.rpc-address.pair.nn1": first, "dfs.namenode.rpc-address.pair.nn2": second,
	} {
		conf.WriteString("<property><name>" + key + "</name><value>" + value + "</value></property>")
	}
	conf.WriteString("</configuration>")
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), conf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
