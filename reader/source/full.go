package source

import (
	"errors"
	"slices"

	"github.com/colinmarc/hdfs/v2"
	"golang.org/x/sys/unix"
)

// quotaExceptions are the exceptions of a NameNode when a directory exceeds a quota.
var quotaExceptions = []string{
	"org.apache.hadoop.hdfs.protocol.QuotaExceededException",
	"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
	"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
	"org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
}

// Full reports whether something could not be written because a file system is full, or a quota is used up.
func Full(err error) bool {
	var remote hdfs.Error
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.As(err, &remote) && slices.Contains(quotaExceptions, remote.Exception())
}
