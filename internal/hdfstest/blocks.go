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
	located        int    // number of replicas that the NameNode reports to clients
}

func (c *Cluster) blocks(t testing.TB, remote string) []block {
	t.Helper()
	var blocks []block
	for word := range strings.FieldsSeq(c.command(t, "blocks", remote)) {
		f := strings.Split(word, ":")
		b := block{name: f[0]}
		if _, err := fmt.Sscan(strings.Join(f[1:], " "), &b.offset, &b.length, &b.located); err != nil {
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
			return nil // DataNodes make and remove files during the walk
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

// Located returns how many replicas of the block at offset the NameNode reports to
// clients: it leaves out those that it knows to be corrupt.
func (c *Cluster) Located(t testing.TB, remote string, offset int64) int {
	t.Helper()
	return c.blockAt(t, remote, offset).located
}

// InternalBlock returns the file on disk of an internal block, and the block's DataNode if that is
// a separate process. The block is the one with the given index in the block group that holds the
// byte at offset of an erasure-coded file.
func (c *Cluster) InternalBlock(t testing.TB, remote string, offset int64, index int) (path string, node int) {
	t.Helper()
	group := c.blockAt(t, remote, offset)
	var id int64
	if _, err := fmt.Sscanf(group.name, "blk_%d", &id); err != nil {
		t.Fatal(err)
	}
	files := c.replicas(t, block{name: fmt.Sprintf("blk_%d", id+int64(index))})
	if len(files) != 1 {
		t.Fatalf("%s at %d: block %d has the files %q", remote, offset, index, files)
	}
	_, after, _ := strings.Cut(files[0], string(filepath.Separator)+"dn")
	_, _ = fmt.Sscanf(after, "%d", &node) // it fails if the DataNode is no separate process
	return files[0], node
}

func (c *Cluster) blockAt(t testing.TB, remote string, offset int64) block {
	t.Helper()
	for _, b := range c.blocks(t, remote) {
		if offset >= b.offset && offset < b.offset+b.length {
			return b
		}
	}
	t.Fatalf("%s has no byte %d", remote, offset)
	return block{}
}

// replica finds a replica on disk: its file, where offset is in it, and how many
// replicas there are.
func (c *Cluster) replica(t testing.TB, remote string, replica int, offset int64) (path string, at int64, replicas int) {
	t.Helper()
	b := c.blockAt(t, remote, offset)
	files := c.replicas(t, b)
	for deadline := time.Now().Add(time.Minute); replica >= len(files) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond) // a DataNode may be moving its files
		files = c.replicas(t, b)
	}
	if replica >= len(files) {
		t.Fatalf("%s at %d has %d replicas, and none with number %d", remote, offset, len(files), replica)
	}
	return files[replica], offset - b.offset, len(files)
}

// CorruptReplica flips a bit of the byte at offset of the file in one replica
// on disk; its checksum stays. It returns how many replicas the block has.
func (c *Cluster) CorruptReplica(t testing.TB, remote string, replica int, offset int64) int {
	t.Helper()
	path, at, n := c.replica(t, remote, replica, offset)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var buf [1]byte
	if _, err := f.ReadAt(buf[:], at); err != nil {
		t.Fatal(err)
	}
	buf[0] ^= 0x10
	if _, err := f.WriteAt(buf[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TruncateReplica truncates one replica on disk, so that it ends before the byte at
// offset of the file.
func (c *Cluster) TruncateReplica(t testing.TB, remote string, replica int, offset int64) {
	t.Helper()
	path, at, _ := c.replica(t, remote, replica, offset)
	if err := os.Truncate(path, at); err != nil {
		t.Fatal(err)
	}
}

// RemoveChecksums removes the checksums (the .meta file) of one replica of the
// block that holds the byte at offset.
func (c *Cluster) RemoveChecksums(t testing.TB, remote string, replica int, offset int64) {
	t.Helper()
	path, _, _ := c.replica(t, remote, replica, offset)
	metas, err := filepath.Glob(path + "_*.meta")
	if err != nil || len(metas) != 1 {
		t.Fatalf("checksums of %s: %v, %v", path, metas, err)
	}
	if err := os.Remove(metas[0]); err != nil {
		t.Fatal(err)
	}
}

// BreakReplica makes every read of one replica fail with an I/O error, even for root:
// it replaces the replica by a link to the memory of the reading process, where a read
// of address 0 fails.
func (c *Cluster) BreakReplica(t testing.TB, remote string, replica int, offset int64) {
	t.Helper()
	path, _, _ := c.replica(t, remote, replica, offset)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/mem", path); err != nil {
		t.Fatal(err)
	}
}

// RemoveReplica removes one replica and its checksums.
func (c *Cluster) RemoveReplica(t testing.TB, remote string, replica int, offset int64) {
	t.Helper()
	path, _, _ := c.replica(t, remote, replica, offset)
	c.RemoveChecksums(t, remote, replica, offset)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// CorruptAll corrupts the byte at offset in every replica.
func (c *Cluster) CorruptAll(t testing.TB, remote string, offset int64) {
	t.Helper()
	for i, n := 0, 1; i < n; i++ {
		n = c.CorruptReplica(t, remote, i, offset)
	}
}
