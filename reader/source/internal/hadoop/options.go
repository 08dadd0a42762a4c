package hadoop

import "time"

// Options says how to reach HDFS beyond what core-site.xml and
// hdfs-site.xml say.
type Options struct {
	// ConfDir holds core-site.xml and hdfs-site.xml. Default: $HADOOP_CONF_DIR,
	// then $HADOOP_HOME/etc/hadoop, $HADOOP_HOME/conf and /etc/hadoop/conf, if
	// they exist.
	ConfDir string
	// User is the user name without Kerberos. Default: $HADOOP_USER_NAME, then the
	// process's user.
	User string
	// KerberosPrincipal (user@REALM or user/host@REALM) logs in with the key table
	// KerberosKeytab. Without them the ticket cache is used, if the configuration or
	// KerberosCCache asks for Kerberos.
	KerberosPrincipal string
	KerberosKeytab    string
	KerberosCCache    string // default: $KRB5CCNAME, then krb5.conf's, then /tmp/krb5cc_<uid>
	Krb5Conf          string // default: $KRB5_CONFIG, then /etc/krb5.conf
	// TimeoutMs is the time limit of one network operation; a node that takes longer
	// counts as hung. Default 10,000, which is longer than a full garbage collection
	// of a DataNode usually takes, and short enough for a fail-over to go unnoticed.
	TimeoutMs int
	// RetryMs limits the time spent on retries of one operation without any progress,
	// including the first contact with the cluster. Default 60,000, since a fail-over of
	// NameNodes takes 10 to 30 s. With NoRetry the first failure is final, but another
	// NameNode or another replica is still tried.
	RetryMs int
	// AllowMissingChecksums allows a replica whose checksums are lost to be read
	// without verification, with a warning, if no other replica can be read. Without
	// it, this is an error.
	AllowMissingChecksums bool
}

// NoRetry as Options.RetryMs means no retries.
const NoRetry = -1

const (
	defaultTimeoutMs = 10_000
	defaultRetryMs   = 60_000
)

func (o *Options) timeout() time.Duration {
	if o.TimeoutMs > 0 {
		return time.Duration(o.TimeoutMs) * time.Millisecond
	}
	return defaultTimeoutMs * time.Millisecond
}

func (o *Options) retry() time.Duration {
	switch {
	case o.RetryMs > 0:
		return time.Duration(o.RetryMs) * time.Millisecond
	case o.RetryMs == NoRetry:
		return 0
	}
	return defaultRetryMs * time.Millisecond
}
