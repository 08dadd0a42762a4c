package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWrite: a file has all of its new contents, or its old ones if writing them has failed.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	fault := errors.New("no")
	if err := WriteFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := Write(path, func(w io.Writer) error {
		_, err := w.Write([]byte("new"))
		return errors.Join(err, fault)
	})
	if data, _ := os.ReadFile(path); !errors.Is(err, fault) || string(data) != "old" || Exists(path+".tmp") {
		t.Errorf("%v, %s", err, data)
	}
}

// TestSyncDir: a file system that does not sync directories, as that of processes, is no failure.
func TestSyncDir(t *testing.T) {
	if err := SyncDir("/proc/self"); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestLinkTree: what is at the place is replaced by the same files, and stays if it is these already.
func TestLinkTree(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "below"), 0o755), os.WriteFile(filepath.Join(from, "below", "a"), []byte("a"), 0o644),
		os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, "other"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if SameTree(from, to) {
		t.Error("two trees are the same")
	}
	changes := 0
	BeforeChange = func(string, string) { changes++ }
	defer func() { BeforeChange = func(string, string) {} }()
	if err := LinkTree(from, to); err != nil || !SameTree(from, to) || Exists(filepath.Join(to, "other")) || changes == 0 {
		t.Error(err, changes)
	}
	changes = 0
	if err := LinkTree(from, to); err != nil || changes != 0 {
		t.Error(err, changes)
	}
	if bytes, _, err := Usage(to); err != nil || bytes != 1 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}

// TestPaths: links lead to the same directory, and are there also where they lead nowhere.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	link, dangling := filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	if err := errors.Join(os.Symlink(dir, link), os.Symlink(filepath.Join(dir, "nothing"), dangling)); err != nil {
		t.Fatal(err)
	}
	if !SameDir(link, dir) || SameDir(link, dangling) || SameDir("", "") || !SameDir(dangling, dangling) || RealDir(link) != RealDir(dir) {
		t.Error("wrong directories are the same")
	}
	if Gone(dangling) || Exists(dangling) || !Gone(filepath.Join(dir, "nothing")) {
		t.Error("a link that leads nowhere is there, and does not exist")
	}
}

// TestDeleted: a file is deleted when its last name is gone, and not where a file system never says
// that there is one, as that of files in memory.
func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := errors.Join(WriteFile(path, nil), os.Link(path, path+"2")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{path, path + "2"} {
		if Deleted(f) {
			t.Errorf("it counts as deleted before %s is", name)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if !Deleted(f) {
		t.Error("it does not count as deleted")
	}
	fd, err := unix.MemfdCreate("a", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	memory := os.NewFile(uintptr(fd), "a")
	defer memory.Close()
	nameless, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	if Deleted(nameless) {
		t.Error("a file at its path counts as deleted")
	}
}
