package blockio_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/blockio"
)

// refuseEnter makes the kernel refuse io_uring_enter to all threads of this process from now on, as
// a seccomp profile may.
func refuseEnter(t *testing.T) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_IO_URING_ENTER},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		t.Skipf("the kernel takes no filter: %v", errno)
	}
}

// TestEnterRefused checks that threads do the reads if rings can be made but not used, as if they
// could not be made. It runs in a process of its own, since the refusal cannot be undone.
func TestEnterRefused(t *testing.T) {
	const inside = "AIBOX_TEST_ENTER_REFUSED"
	if os.Getenv(inside) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestEnterRefused$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	refuseEnter(t)
	var log bytes.Buffer
	d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), QueueDepth: 8})
	must(t, err)
	if d.Engine() != "pread" || !strings.Contains(log.String(), "io_uring_enter") {
		t.Errorf("engine %s: %s", d.Engine(), log.String())
	}
	writeAndRead(t, d)
	must(t, d.Close())
}
