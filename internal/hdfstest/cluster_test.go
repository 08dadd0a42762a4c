package hdfstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCluster(t *testing.T) {
	c := Start(t, Config{DataNodes: 2, Separate: true})
	c.PutBytes(t, []byte(strings.Repeat("0123456789", 200)), "/d/f", PutOptions{BlockBytes: 1024})
	blocks := c.blocks(t, "/d/f")
	if len(blocks) != 2 || blocks[1].offset != 1024 || blocks[1].length != 976 {
		t.Fatalf("blocks %+v", blocks)
	}
	files := c.replicas(t, blocks[1])
	if len(files) != 2 {
		t.Fatalf("replicas %v", files)
	}
	c.CorruptReplica(t, "/d/f", 1, 1030)
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	bad, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if len(good) != len(bad) || good[6] == bad[6] || good[5] != bad[5] {
		t.Errorf("bytes %q and %q", good[:8], bad[:8])
	}
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		if _, err := os.Stat(filepath.Join(c.ConfDir(), name)); err != nil {
			t.Error(err)
		}
	}
	t.Logf("start-up %v", c.Startup())
}
