package hadoop

import (
	"errors"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// A run that is killed while it uploads a file leaves the hidden temporary file
// behind. The next upload to the same directory removes it, if no other process can
// still be writing it: the NameNode lets another client create a file of that name only
// if it has not heard from the writer for a minute (the soft limit of the lease). If a
// file were removed by mistake, its writer would get an error and upload it again.

// leftoverAge is how old a complete temporary file must be before it is removed. A live writer
// renames its file at once, unless it prepares many files first.
const leftoverAge = time.Minute

// removeLeftovers removes the temporary files of killed uploads to a directory. now is the time by the
// clock of the NameNode, which may differ from this machine's. A failure is not an error, since the
// next upload tries again.
func (s *session) removeLeftovers(dir string, now time.Time) {
	req, resp := wire.New("GetListingRequestProto"), wire.New("GetListingResponseProto")
	// One answer of the NameNode, of a thousand entries, is enough: hidden files are
	// few, and their names come first after ".".
	req.Set("src", dir).Set("startAfter", []byte(".")).Set("needLocation", false)
	if err := s.execute("getListing", req.Interface(), resp.Interface()); err != nil || !resp.Has("dirList") {
		return
	}
	for _, e := range resp.In("dirList").List("partialListing") {
		name := string(e.Bytes("path"))
		temp := path.Join(dir, name)
		if fsys.OwnTemp.MatchString(name) && s.abandoned(temp, time.UnixMilli(e.Int("modification_time")), now) {
			if err := s.client.Remove(temp); err == nil {
				s.c.log.Info("HDFS: removed the temporary file of a killed upload", "uri", s.c.URI(temp))
			}
		}
	}
}

// abandoned reports whether it is certain that no process is writing a temporary file.
func (s *session) abandoned(temp string, modified, now time.Time) bool {
	st, err := s.blockState(temp)
	if err != nil {
		return false
	}
	if !st.underConstruction {
		return now.Sub(modified) > s.c.leftoverAge
	}
	// An attempt to create the file ends the lease of a writer that is gone.
	defaults, err := s.client.ServerDefaults()
	if err != nil {
		return false
	}
	_, err = s.create(temp, defaults, fsys.Perm)
	var remote hdfs.Error
	if err == nil {
		return true // it no longer existed; the attempt has made a new, empty file
	}
	if !errors.As(err, &remote) || remote.Exception() != "org.apache.hadoop.fs.FileAlreadyExistsException" {
		return false
	}
	// It is complete now: the NameNode has ended the lease, or the writer, alive, has
	// completed it since its state was read and is about to rename it.
	info, err := s.client.Stat(temp)
	return err == nil && now.Sub(info.ModTime()) > s.c.leftoverAge
}
