// Package jobsource makes the clients that read and write the files of a job, both local ones and,
// according to data.hdfs of the job, those in HDFS.
package jobsource

import (
	"log/slog"

	"aibox/configs"
	"aibox/reader/source"
)

// New returns the clients that read and write a job's files.
func New(job *configs.Job, log *slog.Logger) *source.Sources {
	return source.New(options(job, log))
}

func options(job *configs.Job, log *slog.Logger) source.Options {
	h := job.Data.HDFS
	retryMs := h.RetryMs
	if retryMs == 0 && h != (configs.HDFS{}) { // 0 means no retries in a job file; without a job file all settings are zero
		retryMs = source.NoRetry
	}
	return source.Options{Logger: log, HDFS: source.HDFSOptions{
		ConfDir: h.ConfDir, User: h.User,
		KerberosPrincipal: h.KerberosPrincipal, KerberosKeytab: h.KerberosKeytab, KerberosCCache: h.KerberosCCache,
		Krb5Conf: h.Krb5Conf, TimeoutMs: h.TimeoutMs, RetryMs: retryMs, AllowMissingChecksums: h.AllowMissingChecksums,
	}}
}
