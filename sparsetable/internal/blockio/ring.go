package blockio

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The interface of io_uring, from linux/io_uring.h.

const (
	opRead = 22 // IORING_OP_READ

	setupClamp        = 1 << 4  // IORING_SETUP_CLAMP
	setupCoopTaskrun  = 1 << 8  // IORING_SETUP_COOP_TASKRUN, Linux 5.19
	setupSingleIssuer = 1 << 12 // IORING_SETUP_SINGLE_ISSUER, Linux 6.0
	setupDeferTaskrun = 1 << 13 // IORING_SETUP_DEFER_TASKRUN, Linux 6.1

	featSingleMmap = 1 << 0 // IORING_FEAT_SINGLE_MMAP, Linux 5.4
	featNoDrop     = 1 << 1 // IORING_FEAT_NODROP, Linux 5.5
	featRWCurPos   = 1 << 3 // IORING_FEAT_RW_CUR_POS, Linux 5.6, as IORING_OP_READ
	featNeeded     = featSingleMmap | featNoDrop | featRWCurPos

	enterGetEvents = 1 // IORING_ENTER_GETEVENTS

	offsetRings = 0          // IORING_OFF_SQ_RING
	offsetSQEs  = 0x10000000 // IORING_OFF_SQES
)

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32

	sq struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
		userAddr                                                    uint64
	}
	cq struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
		userAddr                                                    uint64
	}
}

// submission is struct io_uring_sqe as used for reads.
type submission struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	offset        uint64
	address       uint64
	length        uint32
	rwFlags       uint32
	userData      uint64
	_             [3]uint64
}

// completion is struct io_uring_cqe.
type completion struct {
	userData uint64
	result   int32 // bytes, or a negative errno
	flags    uint32
}

// The kernel fixes these sizes.
var (
	_ [120]byte = [unsafe.Sizeof(ringParams{})]byte{}
	_ [64]byte  = [unsafe.Sizeof(submission{})]byte{}
	_ [16]byte  = [unsafe.Sizeof(completion{})]byte{}
)

// ring is the memory that is shared with the kernel. Only the thread that made it uses it.
type ring struct {
	fd     int
	rings  []byte // both rings; the kernel fills the completion ring
	sqeMem []byte

	sqHead, sqTail *uint32
	sqMask         uint32
	sqes           []submission
	tail           uint32 // of the submission ring; published by enter

	cqHead, cqTail *uint32
	cqMask         uint32
	cqes           []completion
}

// newRing makes a ring for depth submissions. The calling goroutine must be locked to its thread,
// and must be the only one to use the ring.
func newRing(depth int) (*ring, error) {
	var p ringParams
	var fd uintptr
	// The flags of the newest kernels are tried first, and no flags last. With the newest ones,
	// completions do not interrupt the thread but are processed when it asks for them.
	for _, flags := range []uint32{setupSingleIssuer | setupDeferTaskrun, setupCoopTaskrun, 0} {
		p = ringParams{flags: flags | setupClamp}
		var errno unix.Errno
		fd, _, errno = unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&p)), 0)
		if errno == 0 {
			break
		}
		if errno != unix.EINVAL || flags == 0 {
			return nil, fmt.Errorf("io_uring_setup: %w", errno)
		}
	}
	unix.CloseOnExec(int(fd))
	r := &ring{fd: int(fd)}
	if p.features&featNeeded != featNeeded {
		r.close()
		return nil, fmt.Errorf("the kernel's io_uring has the features %#x, but those of Linux 5.6 are needed", p.features)
	}
	size := max(uintptr(p.sq.array)+4*uintptr(p.sqEntries), uintptr(p.cq.cqes)+16*uintptr(p.cqEntries))
	var err error
	if r.rings, err = unix.Mmap(r.fd, offsetRings, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err == nil {
		r.sqeMem, err = unix.Mmap(r.fd, offsetSQEs, 64*int(p.sqEntries), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("map io_uring: %w", err)
	}
	word := func(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[at])) }
	r.sqHead, r.sqTail, r.sqMask = word(p.sq.head), word(p.sq.tail), *word(p.sq.ringMask)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.ringMask)
	r.sqes = unsafe.Slice((*submission)(unsafe.Pointer(&r.sqeMem[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*completion)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	// Position i of the ring always refers to entry i.
	for i, a := 0, unsafe.Slice(word(p.sq.array), p.sqEntries); i < len(a); i++ {
		a[i] = uint32(i)
	}
	if err := r.enter(0); err != nil && err != unix.EINTR { // a seccomp profile may allow io_uring_setup but not io_uring_enter
		r.close()
		return nil, fmt.Errorf("io_uring_enter: %w", err)
	}
	return r, nil
}

func (r *ring) close() {
	for _, m := range [][]byte{r.rings, r.sqeMem} {
		if m != nil {
			unmapMemory(m)
		}
	}
	_ = unix.Close(r.fd) // nothing is in flight
}

// pushRead adds a read to the submission ring, which must have room. The read starts with the next
// enter.
func (r *ring) pushRead(fd int, buf []byte, offset int64, userData uint64) {
	r.sqes[r.tail&r.sqMask] = submission{
		opcode: opRead, fd: int32(fd), offset: uint64(offset),
		address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))), length: uint32(len(buf)), userData: userData,
	}
	r.tail++
}

// enter submits what was pushed and waits until there are atLeast completions in the ring. It may
// return early.
func (r *ring) enter(atLeast int) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	n := r.tail - atomic.LoadUint32(r.sqHead)
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), uintptr(atLeast), enterGetEvents, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// reap calls fn with every completion in the ring.
func (r *ring) reap(fn func(userData uint64, result int32)) {
	head, tail := *r.cqHead, atomic.LoadUint32(r.cqTail)
	for ; head != tail; head++ {
		c := &r.cqes[head&r.cqMask]
		fn(c.userData, c.result)
	}
	atomic.StoreUint32(r.cqHead, head)
}
