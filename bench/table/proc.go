package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"aibox/internal/process"
)

// procIO is /proc/self/io.
type procIO struct {
	ReadCalls  int64 // read system calls, whatever they read
	ReadBytes  int64 // fetched from devices
	WriteBytes int64 // sent to devices, or still to be sent: pages that were made dirty, less those dropped
}

func readProcIO() (procIO, error) {
	f, err := process.Fields("io")
	return procIO{ReadCalls: f["syscr"], ReadBytes: f["read_bytes"], WriteBytes: f["write_bytes"] - f["cancelled_write_bytes"]}, err
}

// ownFilesVariable is the environment variable that restricts dropPageCache to the files
// below its directory. Tests set it, because they must not slow down the whole machine.
const ownFilesVariable = "AIBOX_BENCH_OWN_FILES"

// dropPageCache removes the files below dir from the page cache, and everything else,
// too, if the process may do that.
func dropPageCache(dir string) error {
	if os.Getenv(ownFilesVariable) == "" {
		unix.Sync()
		if os.Geteuid() == 0 && os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0) == nil {
			return nil
		}
	}
	return eachFile(dir, func(path string, _ fs.DirEntry) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = f.Sync() // dirty pages could not be dropped
		return errors.Join(err, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	})
}

// eachFile calls fn with the regular files below dir.
func eachFile(dir string, fn func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return fn(path, d)
	})
}

// diskBytes is what the files below dir take on disk.
func diskBytes(dir string) (bytes int64, err error) {
	err = eachFile(dir, func(path string, d fs.DirEntry) error {
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the store has deleted the file meanwhile
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("the size of %s on disk is unknown", path)
		}
		bytes += st.Blocks * 512
		return nil
	})
	return bytes, err
}
