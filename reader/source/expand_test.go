package source

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aibox/reader/source/internal/fsys"
)

// tree makes files with the given names and contents equal to their names.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func expandNames(t *testing.T, dir string, uris ...string) ([]string, error) {
	t.Helper()
	s := New(Options{})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, u := range uris {
		uris[i] = dir + "/" + u
	}
	files, err := s.Expand(context.Background(), uris)
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimPrefix(f.URI, dir+"/"))
	}
	return names, err
}

func TestExpandLocal(t *testing.T) {
	dir := tree(t, "b.csv", "a.csv", "a.csv.gz", "B.csv", "part-10", "part-9", "_SUCCESS", ".hidden",
		"day=1/x", "day=1/_temporary/y", "day=2/hour=1/x", "day=2/hour=0/x", "data[1].csv", "d/_h/z", "_logs/q")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ uris, want string }{
		{"a.csv", "a.csv"},
		{"b.csv a.csv b.csv", "b.csv a.csv b.csv"},
		{"*.csv", "B.csv a.csv b.csv data[1].csv"},
		{"part-*", "part-10 part-9"},
		{"part-?", "part-9"},
		{"[ab].csv", "a.csv b.csv"},
		{"{b,a}.csv", "a.csv b.csv"},
		{"{a,a,{a,b}}.csv", "a.csv b.csv"},
		{"data[1].csv", "data[1].csv"},
		{"day=*/x", "day=1/x"},
		{"day=*", "day=1/x day=2/hour=0/x day=2/hour=1/x"},
		{"day=2", "day=2/hour=0/x day=2/hour=1/x"},
		{"*/*/x", "day=2/hour=0/x day=2/hour=1/x"},
		{"day=2/", "day=2/hour=0/x day=2/hour=1/x"},
		{"_S*", "_SUCCESS"},
		{"_logs", "_logs/q"},
		{"**/x", "day=1/x day=2/hour=0/x day=2/hour=1/x"},
		{"**/*.csv", "B.csv a.csv b.csv data[1].csv"},
		{"day=2/**", "day=2/hour=0/x day=2/hour=1/x"},
		{"day=*/**/x", "day=1/x day=2/hour=0/x day=2/hour=1/x"},
		{"**/hour=1/**/x", "day=2/hour=1/x"},
		{"**/day=*", "day=1/x day=2/hour=0/x day=2/hour=1/x"},
		{"**/{day,hour}=*", "day=1/x day=2/hour=0/x day=2/hour=1/x"},
		{"**/_*/y", "day=1/_temporary/y"},
	} {
		got, err := expandNames(t, dir, strings.Fields(tc.uris)...)
		if err != nil || strings.ReplaceAll(strings.Join(got, " "), "//", "/") != tc.want {
			t.Errorf("%s: got %q, error %v; want %q", tc.uris, got, err, tc.want)
		}
	}
	for _, uri := range []string{"none", "none/*", "x*", "empty", "d", "a.csv/*", "[", "{a"} {
		got, err := expandNames(t, dir, uri)
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), uri) {
			t.Errorf("%s: got %q, error %v; want ErrNotFound that names it", uri, got, err)
		}
	}
}

func TestExpandDetails(t *testing.T) {
	dir := tree(t, "a.gz")
	s := New(Options{})
	for _, prefix := range []string{"file://", "file://localhost", "FILE://LocalHost"} {
		files, err := s.Expand(context.Background(), []string{prefix + dir + "/a.gz"})
		if err != nil || len(files) != 1 || files[0].Size != 4 || files[0].Compression != Gzip || files[0].URI != dir+"/a.gz" {
			t.Errorf("%s: got %+v, %v", prefix, files, err)
		}
	}
	for uri, want := range map[string]string{"file:/logs/a": "write file:///logs/a", "HDFS:/logs": "write hdfs:///logs"} {
		if _, err := s.Expand(context.Background(), []string{uri}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := s.Expand(context.Background(), []string{"s3://bucket/a"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("s3: %v", err)
	}
	if _, err := s.Expand(context.Background(), []string{""}); !errors.Is(err, ErrNotFound) {
		t.Errorf("empty: %v", err)
	}
	if _, err := s.Expand(context.Background(), []string{"/dev/null"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("/dev/null: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Expand(ctx, []string{dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestExpandNamesAllMissing checks that the error names all missing inputs, up to a maximum number.
func TestExpandNamesAllMissing(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := os.WriteFile(good, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{})
	_, err := s.Expand(t.Context(), []string{dir + "/first", good, dir + "/*.gz"})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "/first") || !strings.Contains(err.Error(), "/*.gz") {
		t.Error(err)
	}
	_, err = s.Expand(t.Context(), slices.Repeat([]string{dir + "/none"}, 900))
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "895 more of the 900") || strings.Count(err.Error(), "\n") != maxMissing {
		t.Error(err)
	}
}

func TestExpandNoPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("SKIP: root may read everything")
	}
	dir := tree(t, "a", "sub/b")
	for _, name := range []string{"a", "sub"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := expandNames(t, dir, name); !errors.Is(err, ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRangeLocal(t *testing.T) {
	dir := tree(t, "0123456789")
	ctx := context.Background()
	s := New(Options{})
	files, err := s.Expand(ctx, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	f := files[0]
	for _, off := range []int64{0, 3, 9, 10} {
		if got, err := readRange(ctx, s, f, off); err != nil || got != "0123456789"[off:] {
			t.Errorf("from %d: %q, %v", off, got, err)
		}
	}
	for _, off := range []int64{-1, 11} {
		if _, err := s.OpenRange(ctx, f, off); err == nil {
			t.Errorf("from %d: no error", off)
		}
	}
	at, err := s.OpenAt(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 3)
	if n, err := at.ReadAt(b, 4); n != 3 || err != nil || string(b) != "456" {
		t.Errorf("ReadAt: %d, %v, %q", n, err, b)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.OpenRange(ctx, File{URI: dir, Size: 1}, 0); !errors.Is(err, ErrUnsupported) {
		t.Errorf("directory: %v", err)
	}
}

func readRange(ctx context.Context, s *Sources, f File, offset int64) (string, error) {
	r, err := s.OpenRange(ctx, f, offset)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

// A file that changes after it was listed is an error, not other bytes.
func TestChangedLocal(t *testing.T) {
	ctx := context.Background()
	s := New(Options{})
	for name, change := range map[string]func(path string) error{
		"shrunk":   func(p string) error { return os.Truncate(p, 5) },
		"appended": func(p string) error { return os.WriteFile(p, []byte("0123456789ab"), 0o644) },
		"replaced": func(p string) error { return os.WriteFile(p, []byte("9876543210"), 0o644) },
		"removed":  os.Remove,
	} {
		dir := tree(t, "0123456789")
		files, err := s.Expand(ctx, []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		p := files[0].URI
		if err := change(p); err != nil {
			t.Fatal(err)
		}
		want := ErrChanged
		if name == "removed" {
			want = ErrNotFound
		} else if later := time.Now().Add(time.Second); os.Chtimes(p, later, later) != nil {
			t.Fatal("chtimes")
		}
		if _, err := readRange(ctx, s, files[0], 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}

	// Shrunk while it is being read.
	dir := tree(t, "0123456789")
	files, err := s.Expand(ctx, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.OpenRange(ctx, files[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(files[0].URI, 5); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); !errors.Is(err, ErrChanged) || string(b) != "01234" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	// Written again after the bytes that were read, whose reader then reads no further.
	dir = tree(t, "0123456789")
	if files, err = s.Expand(ctx, []string{dir}); err != nil {
		t.Fatal(err)
	}
	if r, err = s.OpenRange(ctx, files[0], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0].URI, []byte("9876543210"), 0o644); err != nil {
		t.Fatal(err)
	}
	if later := time.Now().Add(time.Second); os.Chtimes(files[0].URI, later, later) != nil {
		t.Fatal("chtimes")
	}
	if err := r.Close(); !errors.Is(err, ErrChanged) {
		t.Errorf("Close returned %v, want %v", err, ErrChanged)
	}
}

func TestCreateLocal(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	p := filepath.Join(dir, "new/deep/out.csv")
	s := New(Options{})
	write := func(text string, finish func(Writer) error) {
		t.Helper()
		w, err := s.Create(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := finish(w); err != nil {
			t.Fatal(err)
		}
	}
	write("one", func(w Writer) error {
		if _, err := os.Stat(p); !errors.Is(err, os.ErrNotExist) {
			t.Error("visible before Close")
		}
		return w.Close()
	})
	write("two", Writer.Abort)
	if b, err := os.ReadFile(p); err != nil || string(b) != "one" {
		t.Errorf("after Abort: %q, %v", b, err)
	}
	write("three", func(w Writer) error { return errors.Join(w.Close(), w.Abort(), w.Close()) })
	if b, err := os.ReadFile(p); err != nil || string(b) != "three" {
		t.Errorf("after Close: %q, %v", b, err)
	}
	left, err := os.ReadDir(filepath.Dir(p))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := s.Create(ctx, dir); err == nil {
		t.Error("Create over a directory succeeded")
	}
}

// TestFullDisk checks that a local failure is reported with the message of the operating system,
// without mention of HDFS.
func TestFullDisk(t *testing.T) {
	err := fsys.OSError("write", "out.csv", &os.PathError{Op: "write", Path: "out.csv", Err: syscall.ENOSPC})
	if want := "write out.csv: no space left on device"; err.Error() != want || !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestCreateReplacesFilesOnly checks that /dev/null and /dev/stdout are not replaced. A rename onto
// them would make them regular files, for all users if the user is root.
func TestCreateReplacesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe, link, stdout := filepath.Join(dir, "pipe"), filepath.Join(dir, "link.csv"), filepath.Join(dir, "stdout")
	file := filepath.Join(dir, "file")
	for _, err := range []error{
		syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link), os.Symlink("/proc/self/fd/1", stdout), os.WriteFile(file, nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{})
	for _, path := range []string{pipe, link, stdout} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := s.Create(t.Context(), path); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", path, err)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s is now %v, %v", path, after, err)
		}
	}
	w, err := s.Create(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestCreateFollowsLinks checks that the target of a symbolic link is written, and that the link
// stays.
func TestCreateFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("far/disk", 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"near": "far/disk", "far/disk/link.csv": "../scores.csv", "first.csv": "near/link.csv", "absent.csv": filepath.Join(dir, "far/new/scores.csv")} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{})
	defer s.Close()
	for range 2 { // the first time there is no file
		for link, file := range map[string]string{"first.csv": "far/scores.csv", "absent.csv": "far/new/scores.csv"} {
			w, err := s.Create(t.Context(), link)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if to, err := os.Readlink(link); err != nil || to == "" {
				t.Errorf("%s is no link any more: %v", link, err)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
				t.Errorf("%s: %q, %v", file, text, err)
			}
		}
	}
}

// TestExpandLoop checks that the error names a link that leads back to a directory that contains
// it, however indirectly.
func TestExpandLoop(t *testing.T) {
	dir := tree(t, "in/a/x.csv")
	for _, name := range []string{"one", "two"} {
		if err := os.Symlink("../../in", filepath.Join(dir, "in/a", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, uri := range []string{"in", "in/**/*.csv"} {
		if _, err := expandNames(t, dir, uri); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "in/a/one") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestExpandBrokenLinks checks that a link that leads nowhere, for example to a disk that is not
// mounted, or to itself, is an error and not a missing file if the input includes it, and is
// ignored otherwise.
func TestExpandBrokenLinks(t *testing.T) {
	dir := tree(t, "in/a/x.csv", "in/b/x.csv")
	for link, to := range map[string]string{"in/a/y.csv": "/nowhere/y.csv", "in/c": "/nowhere", "in/b/self": "self", "in/b/up": "..", "in/b/.lock": "somebody"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for uri, want := range map[string]string{
		"in": "in/a/y.csv", "in/a": "in/a/y.csv", "in/a/*.csv": "in/a/y.csv", "in/*/x.csv": "in/c", "in/b": "in/b/self", "in/b/u*": "in/b/up",
		"in/b/*.csv": "", "in/[ab]/x.csv": "", "in/{a,b}/x*": "",
	} {
		got, err := expandNames(t, dir, uri)
		switch {
		case want == "" && (err != nil || len(got) == 0):
			t.Errorf("%s: %q, %v", uri, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want+": ")):
			t.Errorf("%s: %q, %v, want an error about %s", uri, got, err, want)
		}
	}
	if _, err := expandNames(t, dir, "in/a"); err == nil || !strings.Contains(err.Error(), "a link to /nowhere/y.csv, which does not exist") {
		t.Errorf("%v", err)
	}
}
