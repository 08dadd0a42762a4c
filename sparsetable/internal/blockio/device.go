package blockio

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrClosed is wrapped by every error about a closed device or file.
var ErrClosed = errors.New("blockio: closed")

// ErrUnaligned is wrapped by errors about offsets, lengths or addresses that
// are not multiples of the unit.
var ErrUnaligned = errors.New("blockio: not aligned to the device's unit")

// Units that a device may have. The upper one is also the alignment of mapped
// memory and the block of common file systems.
const (
	minUnit = 512
	maxUnit = 4096
)

// A Device is the directory of one SSD. Names are base names within it.
type Device interface {
	// Dir names the directory in errors and logs.
	Dir() string
	// Unit returns the size of a block in bytes, a power of two from 512 to 4096. Offsets, lengths
	// and addresses are multiples of it.
	Unit() int
	// Direct reports whether files bypass the page cache.
	Direct() bool
	// Engine names how the device reads: "io_uring", "pread" or "memory".
	Engine() string
	// QueueDepth returns the maximum number of reads that the kernel has at once.
	QueueDepth() int

	// Create makes an empty file for reading and writing; the name must be new.
	// The file survives a crash only after SyncDir.
	Create(name string) (File, error)
	// OpenFile opens an existing file for reading and writing.
	OpenFile(name string) (File, error)
	// Remove deletes a file. Open Files of it stay readable.
	Remove(name string) error
	// List returns the names of all files, in any order.
	List() ([]string, error)
	// SyncDir makes creations and removals durable.
	SyncDir() error
	// Free returns the number of bytes that the file system has left for this process.
	Free() (int64, error)

	// Submit starts reads; c receives each of them when it ends, with its Err set. Submit does not
	// wait and always takes all reads: those that cannot start (for example because the device is
	// closed or a buffer is not aligned) end at once with an error.
	Submit(c *Completions, reads []*Read)

	// Stats counts what was read and written since Open.
	Stats() Stats
	// Close waits for the reads in flight and stops the device's goroutines. Files stay open until
	// they are closed themselves, but no more reads of them can be submitted. A second Close does
	// nothing.
	Close() error
}

// A File is an open file of a Device. Buffers must be aligned, and their lengths must be whole
// units, see the package documentation.
type File interface {
	Name() string
	// ReadAt reads synchronously, which is meant for headers and long sequential reads. It returns
	// fewer bytes than requested only with an error, which is io.EOF at the end of the file.
	ReadAt(buf []byte, offset int64) (int, error)
	// WriteAt writes synchronously. It writes all of buf or returns an error; after an
	// error it is unknown how much of buf the file has.
	WriteAt(buf []byte, offset int64) (int, error)
	// Sync makes the file's bytes and size durable. After an error, the state of bytes written
	// since the last successful Sync is unknown, even if a later Sync succeeds: they must be
	// written again elsewhere.
	Sync() error
	Size() (int64, error)
	// Close closes the file. Reads that were already submitted end normally.
	Close() error
}

// Stats counts what a device did since it was opened.
type Stats struct {
	Reads, ReadBytes   uint64 // by Submit and ReadAt
	Writes, WriteBytes uint64
	Syncs              uint64
	// EngineCalls counts system calls that started or collected reads; with
	// io_uring one call serves many reads.
	EngineCalls uint64
	// MaxInFlight is the largest number of reads that the kernel had at one time. It is
	// at most QueueDepth.
	MaxInFlight uint64
}

// Left describes a full directory for an error message: its name, and the remaining space of its
// file system.
func Left(d Device) string {
	free, err := d.Free()
	if err != nil {
		return fmt.Sprintf("%s (the space left on its file system is unknown: %v)", d.Dir(), err)
	}
	return fmt.Sprintf("%s, whose file system has %d bytes left", d.Dir(), free)
}

// IsFull reports whether err says that the file system is full or the user's quota is used up.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// CheckAligned returns an error that wraps ErrUnaligned if buf is empty, or if its address, its
// length or offset is not a multiple of unit. It is for implementations of File and Device.
func CheckAligned(unit int, buf []byte, offset int64) error {
	u := uintptr(unit) - 1
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	if len(buf) == 0 || addr&u != 0 || uintptr(len(buf))&u != 0 || offset < 0 || uintptr(offset)&u != 0 {
		return fmt.Errorf("%w of %d bytes: offset %d, length %d, address %#x", ErrUnaligned, unit, offset, len(buf), addr)
	}
	return nil
}
