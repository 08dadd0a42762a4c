package remotesnapshots

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/trainer/modeldir"
)

// TestUnreadable checks that a file of the table that uploads have failed to read twice counts as
// lost, and that a file that failed once, other files, and other errors do not.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	cannot := func(name string) error {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return &fs.PathError{Op: "read", Path: path, Err: unix.EIO}
	}
	d := unreadable{dirs: []string{dir}}
	for _, err := range []error{nil, errors.New("the server is away"), cannot("0123456789abcdef-1.bucket"), cannot("0123456789abcdef-2.bucket"), errors.New("the server is away")} {
		d.note(err)
		if lost := d.tableLost(); lost != nil {
			t.Fatalf("after %v: %v", err, lost)
		}
	}
	d.note(cannot("0123456789abcdef-1.bucket"))
	if lost := new(modeldir.LostError); !errors.As(d.tableLost(), &lost) {
		t.Errorf("%v", d.tableLost())
	}
}
