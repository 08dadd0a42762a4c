package trainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/testtools"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/transfer"
)

// TestRemoteDiskFull checks that if a real file system is full, at whatever moment of a
// publication, only the copy is missing, and not the model. The earlier generation can be restored,
// and once there is space, the other one is published too.
func TestRemoteDiskFull(t *testing.T) {
	const page = 4096
	m := newMachine(t, "", onSSD("output.keep_generations=2")...)
	first, second := m.night("2026-11-21"), m.night("2026-11-22")
	model := filepath.Join(m.at, "model")
	digests := []string{"", first.Digest, second.Digest}
	restored := func(remote string, generation int) error {
		to := filepath.Join(t.TempDir(), "model")
		out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: remote, To: to, Options: quiet.transfer()})
		if err != nil {
			return err
		}
		in, err := inference.Inspect(t.Context(), to, true, testjobs.Quiet)
		if err == nil && (out.Generation != generation || in.Digest != digests[generation]) {
			err = fmt.Errorf("generation %d has the digest %s, want %d with %s", out.Generation, in.Digest, generation, digests[generation])
		}
		return err
	}
	// How much the file system takes with the first model, and with both.
	used := func(dir string) (bytes int) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			bytes += int(info.Size()+page-1) / page * page
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	publish := func(generation int, remote string) error {
		_, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: fmt.Sprintf("%s@%d", model, generation), Remote: remote, Options: quiet.transfer()})
		return err
	}
	large := t.TempDir()
	if err := publish(1, large); err != nil {
		t.Fatal(err)
	}
	least := used(large)
	if err := publish(2, large); err != nil {
		t.Fatal(err)
	}
	most := used(large)
	full := 0
	for i := range 6 {
		size := least + (most-least)*i/6/page*page
		at := testtools.Tmpfs(t, fmt.Sprintf("size=%d", size))
		remote := filepath.Join(at, "remote")
		if err := publish(1, remote); err != nil {
			// With its temporary files, the first one takes more than it does in the end.
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("%d bytes, first generation: %v", size, err)
			}
			continue
		}
		err := publish(2, remote)
		if err == nil {
			t.Errorf("%d bytes suffice, where %d are needed", size, most)
			continue
		}
		full++
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "there is no space left: free some there, or raise the quota") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := restored(remote, 1); err != nil {
			t.Errorf("%d bytes, full: %v", size, err)
		}
		if err := unix.Mount("none", at, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", 4*most)); err != nil {
			t.Fatal(err)
		}
		if err := publish(2, remote); err != nil {
			t.Errorf("%d bytes, with more room: %v", size, err)
		}
		if err := restored(remote, 2); err != nil {
			t.Errorf("%d bytes, with more room: %v", size, err)
		}
		for _, left := range []string{"pending/*", "objects/.*"} {
			if names, err := filepath.Glob(filepath.Join(remote, left)); err != nil || len(names) > 0 {
				t.Errorf("%d bytes: %v are left, %v", size, names, err)
			}
		}
	}
	if full == 0 {
		t.Error("no file system was full while the second generation was published")
	}
}

// TestRemoteFullOfSnapshots checks that the error about a remote directory that has no space for
// the model says where snapshots of the run are, if there are any, which may use the space.
func TestRemoteFullOfSnapshots(t *testing.T) {
	for _, given := range []bool{true, false} {
		at := testtools.Tmpfs(t, "size=32k")
		set := []string{everyPass}
		if given {
			set = append(set, "snapshots.remote=file://"+at+"/remote/")
		}
		m := newMachine(t, at+"/remote", set...)
		s := m.night("2026-11-21")
		if says := strings.Contains(s.NotPublished, "delete the directory file://"+at+"/remote/snapshots"); says != given || !strings.Contains(s.NotPublished, "there is no space left") {
			t.Errorf("snapshots there: %v; it says %q", given, s.NotPublished)
		}
	}
}
