package source

import (
	"errors"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"
)

// A run that is killed while it uploads a file leaves the hidden temporary file
// behind. The next upload of the same file removes it, if nobody can be writing
// it: the NameNode lets somebody else create a file of that name only when its
// writer has not been heard of for a minute (the soft limit of its lease). Were
// it wrong all the same, the writer would get an error and upload once more.

// leftoverAge is how old a finished temporary file must be: its writer renames
// it at once. Tests change it.
var leftoverAge = time.Minute

// tempSuffix is what tempName puts behind the name.
var tempSuffix = regexp.MustCompile(`^[0-9a-f]{12}\.tmp$`)

// removeLeftovers removes what killed uploads of p left. It is no error when
// that fails: the next upload tries it again.
func (s *session) removeLeftovers(p string) {
	dir, name := path.Split(p)
	prefix := "." + name + "."
	req, resp := emptyMessage("GetListingRequestProto"), emptyMessage("GetListingResponseProto")
	// The entries behind the prefix; hidden ones are few, and there is an end to
	// how many are listed at a time.
	req.set("src", path.Clean(dir)).set("startAfter", []byte(prefix)).set("needLocation", false)
	if err := s.execute("getListing", req.Interface(), resp.Interface()); err != nil || !resp.has("dirList") {
		return
	}
	for _, e := range resp.in("dirList").list("partialListing") {
		rest, ours := strings.CutPrefix(string(e.bytes("path")), prefix)
		if !ours {
			return // entries are in byte order
		}
		temp := path.Join(dir, prefix+rest)
		if tempSuffix.MatchString(rest) && s.abandoned(temp, time.UnixMilli(e.int("modification_time"))) {
			if err := s.client.Remove(temp); err == nil {
				s.c.log.Info("HDFS: removed what a killed upload left", "uri", s.c.uri(temp))
			}
		}
	}
}

// abandoned says whether nobody can be writing a temporary file.
func (s *session) abandoned(temp string, modified time.Time) bool {
	st, err := s.blockState(temp)
	if err != nil {
		return false
	}
	if !st.underConstruction {
		return time.Since(modified) > leftoverAge
	}
	// An attempt to create it ends the lease of a writer that is gone.
	defaults, err := s.client.ServerDefaults()
	if err != nil {
		return false
	}
	mode := emptyMessage("FsPermissionProto").set("perm", uint32(0o644))
	req, resp := emptyMessage("CreateRequestProto"), emptyMessage("CreateResponseProto")
	req.set("src", temp).set("masked", mode).set("clientName", s.client.Name()).set("createFlag", uint32(1))
	req.set("createParent", false).set("replication", uint32(defaults.Replication)).set("blockSize", uint64(defaults.BlockSize))
	err = s.execute("create", req.Interface(), resp.Interface())
	var remote hdfs.Error
	return err == nil || errors.As(err, &remote) && remote.Exception() == "org.apache.hadoop.fs.FileAlreadyExistsException"
}
