package blocktest

import (
	"fmt"
	"io"

	"aibox/sparsetable/internal/blockio"
)

// file implements blockio.File.
type file struct {
	dev    *Device
	name   string
	node   *inode
	closed bool // under dev.mu
}

// Name implements blockio.File.
func (f *file) Name() string { return f.name }

// checkLocked checks a call on the file and returns its fault. REQUIRES: the
// device's mu is held.
func (f *file) checkLocked(op Op) Fault {
	if f.closed {
		return Fault{Err: fmt.Errorf("%w: file %s/%s", blockio.ErrClosed, f.dev.dir, f.name)}
	}
	op.Name = f.name
	return f.dev.checkLocked(op)
}

// ReadAt implements blockio.File.
func (f *file) ReadAt(buf []byte, offset int64) (int, error) {
	if err := blockio.CheckAligned(f.dev.unit, buf, offset); err != nil {
		return 0, err
	}
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	fault := f.checkLocked(Op{Kind: Read, Offset: offset, Bytes: len(buf)})
	if fault.Err != nil {
		return 0, f.dev.pathError("read", f.name, fault.Err)
	}
	f.dev.mu.stats.Reads++
	n := 0
	if offset < int64(len(f.node.data)) {
		n = copy(buf, f.node.data[offset:])
	}
	if fault.Partial {
		n = min(n, fault.Bytes)
	}
	f.dev.mu.stats.ReadBytes += uint64(n)
	if fault.FlipBit {
		bit := f.dev.mu.rng.IntN(max(1, 8*n))
		buf[bit/8] ^= 1 << (bit % 8)
	}
	if n < len(buf) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements blockio.File.
func (f *file) WriteAt(buf []byte, offset int64) (int, error) {
	if err := blockio.CheckAligned(f.dev.unit, buf, offset); err != nil {
		return 0, err
	}
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	fault := f.checkLocked(Op{Kind: Write, Offset: offset, Bytes: len(buf)})
	if fault.Err != nil && !fault.Partial {
		return 0, f.dev.pathError("write", f.name, fault.Err)
	}
	n, err := len(buf), fault.Err
	if fault.Partial {
		n = min(n, fault.Bytes/f.dev.unit*f.dev.unit)
	}
	if grow := offset + int64(n) - int64(len(f.node.data)); grow > 0 && grow > f.dev.freeLocked() {
		n = int(max(0, int64(n)-grow+f.dev.freeLocked())) / f.dev.unit * f.dev.unit
		err = errNoSpace
	}
	if need := offset + int64(n); need > int64(len(f.node.data)) && n > 0 {
		f.node.data = append(f.node.data, make([]byte, need-int64(len(f.node.data)))...)
	}
	if n > 0 { // else offset may lie behind the end
		copy(f.node.data[offset:], buf[:n])
	}
	for at := offset; at < offset+int64(n); at += int64(f.dev.unit) {
		f.node.dirty[at] = true
	}
	f.dev.mu.stats.Writes++
	f.dev.mu.stats.WriteBytes += uint64(n)
	if err != nil {
		return n, f.dev.pathError("write", f.name, err)
	}
	return n, nil
}

// Sync implements blockio.File.
func (f *file) Sync() error {
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	if fault := f.checkLocked(Op{Kind: Sync}); fault.Err != nil {
		return f.dev.pathError("fdatasync", f.name, fault.Err)
	}
	f.node.durable = append(f.node.durable[:0], f.node.data...)
	clear(f.node.dirty)
	f.dev.mu.stats.Syncs++
	return nil
}

// Size implements blockio.File.
func (f *file) Size() (int64, error) {
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	if fault := f.checkLocked(Op{Kind: Size}); fault.Err != nil {
		return 0, f.dev.pathError("stat", f.name, fault.Err)
	}
	return int64(len(f.node.data)), nil
}

// Close implements blockio.File. No fault can be injected into it, because nothing durable depends
// on it.
func (f *file) Close() error {
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	if f.closed {
		return fmt.Errorf("%w: file %s/%s", blockio.ErrClosed, f.dev.dir, f.name)
	}
	f.closed = true
	f.dev.mu.open--
	return nil
}
