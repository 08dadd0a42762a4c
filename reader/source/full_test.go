package source

import (
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// answered is a NameNode's answer with an exception.
type answered string

func (e answered) Error() string     { return "call failed (" + string(e) + ")" }
func (e answered) Method() string    { return "call" }
func (e answered) Desc() string      { return "ERROR_APPLICATION" }
func (e answered) Exception() string { return string(e) }
func (e answered) Message() string   { return "" }

func TestFull(t *testing.T) {
	const protocol = "org.apache.hadoop.hdfs.protocol."
	for _, tc := range []struct {
		err  error
		full bool
	}{
		{&fs.PathError{Op: "write", Path: "/a", Err: unix.ENOSPC}, true},
		{&fs.PathError{Op: "write", Path: "/a", Err: unix.EDQUOT}, true},
		{answered(protocol + "NSQuotaExceededException"), true},
		{answered(protocol + "DSQuotaExceededException"), true},
		{answered(protocol + "QuotaByStorageTypeExceededException"), true},
		{answered(protocol + "SnapshotAccessControlException"), false},
		{&fs.PathError{Op: "write", Path: "/a", Err: unix.EIO}, false},
		{nil, false},
	} {
		err := tc.err
		if err != nil {
			err = &Error{Op: "write", URI: "hdfs://nn/a", Kind: ErrUnavailable, Err: fmt.Errorf("upload: %w", err)}
		}
		if Full(err) != tc.full {
			t.Errorf("%v: %v", err, !tc.full)
		}
	}
}
