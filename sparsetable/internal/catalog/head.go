package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// HEAD says which snapshots the database must have. It lies in the catalog's
// directory; integers are little-endian:
//
//	magic   8 bytes   "aiboxHD1"
//	last    uint64    the highest id that was committed
//	n       uint32    kept snapshots
//	        n times   id uint64, ascending
//	crc     uint32    CRC-32C of everything before
//
// If the end of the manifest is damaged, Pebble assumes that the machine crashed while it was
// written, and ignores the last commits. If the table were opened in that state, it would delete
// the files of these commits. So a commit writes HEAD after the snapshot is in the database, and a
// drop writes HEAD before the snapshot is deleted from the database. Open compares the two before
// it changes anything:
//
//	kept by HEAD, in the database          as it should be
//	kept by HEAD, not in the database      damage
//	not in HEAD, later than last           a crash between a commit and HEAD
//	not in HEAD, not later than last       a crash between HEAD and a drop, which
//	                                       Open completes
//	last is later than the database's      damage
//
// HEAD is written under another name, synced and renamed, and then the directory is synced, so that
// a crash leaves the old HEAD or the new one. A catalog has no HEAD if it was made by a version
// that did not write one, or if a crash interrupted its creation; Open then writes HEAD.
type head struct {
	last uint64
	ids  []uint64
}

const (
	HeadName  = "HEAD"
	headMagic = "aiboxHD1"
	headBytes = 8 + 8 + 4 + 4 // without ids
)

func (h *head) encode() []byte {
	b := make([]byte, 0, headBytes+8*len(h.ids))
	b = append(b, headMagic...)
	b = binary.LittleEndian.AppendUint64(b, h.last)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.ids)))
	for _, id := range h.ids {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeHead reads what encode made. The error is errChecksum or errRecord.
func decodeHead(b []byte) (*head, error) {
	le := binary.LittleEndian
	if len(b) < headBytes || crc32.Checksum(b[:len(b)-4], castagnoli) != le.Uint32(b[len(b)-4:]) {
		return nil, errChecksum
	}
	h := &head{last: le.Uint64(b[8:])}
	n := le.Uint32(b[16:])
	if string(b[:8]) != headMagic || int64(len(b)) != headBytes+8*int64(n) {
		return nil, errRecord
	}
	for i := range int(n) {
		id := le.Uint64(b[20+8*i:])
		if id == 0 || id > h.last || i > 0 && id <= h.ids[i-1] {
			return nil, errRecord
		}
		h.ids = append(h.ids, id)
	}
	return h, nil
}

// headLocked returns the HEAD for the snapshots in memory.
func (c *Catalog) headLocked() *head {
	h := &head{last: c.mu.lastID}
	for _, s := range c.mu.snapshots {
		h.ids = append(h.ids, s.ID)
	}
	return h
}

// readHead reads HEAD; it returns nil if there is none.
func (c *Catalog) readHead() (*head, error) {
	f, err := c.fs.Open(c.fs.PathJoin(c.dir, HeadName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("catalog: %s: open %s: %w", c.dir, HeadName, err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("catalog: %s: read %s: %w", c.dir, HeadName, err)
	}
	h, err := decodeHead(b)
	if err != nil {
		return nil, c.corrupt(HeadName, "%w: nothing was changed; move the file away, and delete it if `aibox table stats` then lists all snapshots", err)
	}
	return h, nil
}

// writeHeadLocked writes HEAD for the snapshots in memory and makes it durable.
func (c *Catalog) writeHeadLocked() (err error) {
	path := c.fs.PathJoin(c.dir, HeadName)
	defer func() {
		if err != nil {
			err = fmt.Errorf("catalog: %s: write %s: %w", c.dir, HeadName, err)
		}
	}()
	f, err := c.fs.Create(path+tmpSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(c.headLocked().encode())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := c.fs.Rename(path+tmpSuffix, path); err != nil {
		return err
	}
	return SyncDir(c.fs, c.dir)
}

// checkHead compares the database with HEAD, if there is one, and returns the
// snapshots whose drop was interrupted.
func (c *Catalog) checkHead(h *head) (dropped []uint64, err error) {
	if h == nil {
		return nil, nil
	}
	const advice = "its manifest is damaged; nothing was changed: restore the directory from a copy, or remove " + HeadName + " to continue with what is left, which deletes the rest"
	have := map[uint64]bool{}
	for _, s := range c.mu.snapshots {
		have[s.ID] = true
		if _, kept := slices.BinarySearch(h.ids, s.ID); !kept && s.ID <= h.last {
			dropped = append(dropped, s.ID)
		}
	}
	for _, id := range h.ids {
		if !have[id] {
			return nil, c.corrupt("its database", "snapshot %d was committed but is not there: %s", id, advice)
		}
	}
	if h.last > c.mu.lastID {
		return nil, c.corrupt("its database", "its last snapshot id is %d, but snapshot %d was committed: %s", c.mu.lastID, h.last, advice)
	}
	return dropped, nil
}

// completeDrops completes the drops that a crash interrupted, see Drop.
func (c *Catalog) completeDrops(dropped []uint64) error {
	for _, id := range dropped {
		c.mu.snapshots = slices.DeleteFunc(c.mu.snapshots, func(s *kept) bool { return s.ID == id })
		if c.readOnly {
			continue
		}
		if err := c.deleteSnapshot(id, nil); err != nil { // its pages are found with the other garbage
			return err
		}
	}
	return nil
}

// LastID is the ID of the last committed snapshot, kept or not, according to the contents b of a
// file HEAD, or 0 if b is not valid.
func LastID(b []byte) uint64 {
	h, err := decodeHead(b)
	if err != nil {
		return 0
	}
	return h.last
}

// Head returns the contents of the file HEAD of the catalog in a directory, or nil if it is missing
// or damaged.
func Head(fs vfs.FS, dir string) []byte {
	if fs == nil {
		fs = vfs.Default
	}
	b, err := readFile(fs, fs.PathJoin(dir, HeadName))
	if err != nil {
		return nil
	}
	if _, err := decodeHead(b); err != nil {
		return nil
	}
	return b
}
