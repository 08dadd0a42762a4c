package hdfstest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// block is one block of a file.
type block struct {
	name           string // blk_N
	offset, length int64  // in the file
}

func (c *Cluster) blocks(t testing.TB, remote string) []block {
	t.Helper()
	var blocks []block
	for _, word := range strings.Fields(c.command(t, "blocks", remote)) {
		f := strings.Split(word, ":")
		b := block{name: f[0]}
		if _, err := fmt.Sscan(f[1]+" "+f[2], &b.offset, &b.length); err != nil {
			t.Fatalf("blocks of %s: %q: %v", remote, word, err)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// replicas finds the files on disk that hold a block, in order of their paths
// (that is, of the DataNodes).
func (c *Cluster) replicas(t testing.TB, b block) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(c.dir, "dfs", "data"), func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // DataNodes make and remove files meanwhile
		}
		if err == nil && d.Name() == b.name {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// CorruptReplica flips a bit of the byte at offset of the file in one replica
// on disk; its checksum stays. It returns how many replicas the block has.
func (c *Cluster) CorruptReplica(t testing.TB, remote string, replica int, offset int64) int {
	t.Helper()
	for _, b := range c.blocks(t, remote) {
		if offset < b.offset || offset >= b.offset+b.length {
			continue
		}
		files := c.replicas(t, b)
		for deadline := time.Now().Add(time.Minute); replica >= len(files) && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond) // a DataNode moves its files meanwhile
			files = c.replicas(t, b)
		}
		if replica >= len(files) {
			t.Fatalf("%s at %d: %d replicas, no number %d", remote, offset, len(files), replica)
		}
		f, err := os.OpenFile(files[replica], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var buf [1]byte
		if _, err := f.ReadAt(buf[:], offset-b.offset); err != nil {
			t.Fatal(err)
		}
		buf[0] ^= 0x10
		if _, err := f.WriteAt(buf[:], offset-b.offset); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	t.Fatalf("%s has no byte %d", remote, offset)
	return 0
}

// CorruptAll corrupts the byte at offset in every replica.
func (c *Cluster) CorruptAll(t testing.TB, remote string, offset int64) {
	t.Helper()
	for i, n := 0, 1; i < n; i++ {
		n = c.CorruptReplica(t, remote, i, offset)
	}
}
