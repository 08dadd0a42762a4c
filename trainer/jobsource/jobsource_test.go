package jobsource

import (
	"testing"

	"aibox/configs"
	"aibox/reader/source"
)

// retry_ms: 0 in a job file means no retries; a command without a job file has
// the defaults of package source.
func TestRetryMs(t *testing.T) {
	job := new(configs.Job)
	if got := options(job, nil).HDFS.RetryMs; got != 0 {
		t.Errorf("without a job file: %d", got)
	}
	job.Data.HDFS.TimeoutMs = 10_000
	if got := options(job, nil).HDFS.RetryMs; got != source.NoRetry {
		t.Errorf("retry_ms 0: %d", got)
	}
	job.Data.HDFS.RetryMs = 300
	if got := options(job, nil).HDFS.RetryMs; got != 300 {
		t.Errorf("retry_ms 300: %d", got)
	}
}
