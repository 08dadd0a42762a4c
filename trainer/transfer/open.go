package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modelfiles"
	"aibox/trainer/remote"
)

// Open opens a remote directory. It logs the progress of what is done with it, under the name
// doing. bytesPerSecond limits the transfer; 0 means no limit.
func Open(sources *source.Sources, uri string, bytesPerSecond int64, doing string, log *slog.Logger) (*remote.Directory, error) {
	d, err := sources.Directory(uri)
	if err != nil {
		return nil, err
	}
	return remote.Open(d.URI, d, remote.Options{
		BytesPerSecond: bytesPerSecond, Logger: log, Progress: logProgress(doing, uri, log), Optional: modelfiles.IsReport,
	}), nil
}

// ErrAbsent says that a remote directory does not exist.
var ErrAbsent = errkind.New(errkind.IO, "it does not exist")

// OpenPresent is Open for a remote directory whose contents decide what is done, or to which more
// is written while training goes on. On a mounted file system, the directory must exist, or the
// error is ErrAbsent: if the file system is not mounted, the contents are unknown, and what is
// written is hidden below it. HDFS is not mounted; there, a directory that does not exist counts as
// empty.
func OpenPresent(sources *source.Sources, uri string, bytesPerSecond int64, doing string, log *slog.Logger) (*remote.Directory, error) {
	if path := MountedPath(sources, uri); path != "" {
		if err := checkMounted(path, uri); err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return nil, errkind.Errorf(errkind.IO, "remote directory %s: it is a file; name a directory", uri)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return nil, fmt.Errorf("remote directory %s: %w: mount its file system, or create it if nothing was ever written there: mkdir -p %s", uri, ErrAbsent, humanize.ShellWord(path))
		}
	}
	return Open(sources, uri, bytesPerSecond, doing, log)
}

// OpenExisting is OpenPresent for callers that only look at the contents: a directory of HDFS has
// to exist, too.
func OpenExisting(ctx context.Context, sources *source.Sources, uri, doing string, log *slog.Logger) (*remote.Directory, error) {
	d, err := OpenPresent(sources, uri, 0, doing, log)
	if err != nil {
		return nil, err
	}
	store, err := sources.Directory(uri)
	if err != nil {
		return nil, err
	}
	there, err := store.Exists(ctx)
	if err == nil && !there {
		err = ErrAbsent
	}
	if err != nil {
		return nil, fmt.Errorf("remote directory %s: %w", uri, err)
	}
	return d, nil
}

// CheckPlace fails if a remote directory on a mounted file system must not be created, or has other
// files and no models.
func CheckPlace(ctx context.Context, sources *source.Sources, uri string) error {
	if MountedPath(sources, uri) == "" {
		return nil
	}
	if err := checkParent(sources, uri); err != nil {
		return err
	}
	store, err := sources.Directory(uri)
	if err != nil {
		return err
	}
	return checkForeign(ctx, remote.Open(uri, store, remote.Options{}))
}

// checkParent fails with ErrAbsent if a remote directory on a mounted file system must not be
// created. Its parent directory has to exist: otherwise a mistyped path, or one in a file system
// that is not mounted, would become a new remote directory.
func checkParent(sources *source.Sources, uri string) error {
	path := MountedPath(sources, uri)
	if path == "" {
		return nil
	}
	if err := checkMounted(path, uri); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("remote directory %s: %w, nor does the directory that it is in: is the path right, and its file system mounted? To create it: mkdir -p %s", uri, ErrAbsent, humanize.ShellWord(path))
	}
	return nil
}

// checkMounted fails with ErrAbsent if a remote directory is known to be on a file system that is
// not mounted.
func checkMounted(path, uri string) error {
	if err := disk.CheckMounted(path); err != nil {
		return fmt.Errorf("remote directory %s: %w: %w", uri, ErrAbsent, err)
	}
	return nil
}

// checkForeign fails if the directory has no models yet but files of something else, such as data:
// whoever reads those would read models with them.
func checkForeign(ctx context.Context, d *remote.Directory) error {
	if begun, err := d.Begun(ctx); err != nil || begun {
		return err
	}
	name, err := d.Foreign(ctx)
	if err != nil || name == "" {
		return err
	}
	return errkind.Errorf(errkind.Usage, "remote directory %s: it has no models, but other files, such as %s, and programs that read these would also read models; name another directory. To keep models beside these files nevertheless, create the subdirectory generations in it", d.URI(), name)
}

// MountedPath returns the path of a remote directory on a mounted file system; "" if it is not on
// one.
func MountedPath(sources *source.Sources, uri string) string {
	d, err := sources.Directory(uri)
	if err != nil { // opening it reports why
		return ""
	}
	return d.LocalPath()
}

// progressEvery is how often progress is logged.
const progressEvery = 30 * time.Second

// logProgress returns a function that logs how many bytes were moved, now and then.
func logProgress(doing, uri string, log *slog.Logger) func(done, total int64) {
	var mu sync.Mutex
	last := time.Now()
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		log.Info(doing, "remote", uri, "done", humanize.Bytes(done), "of", humanize.Bytes(total))
	}
}
