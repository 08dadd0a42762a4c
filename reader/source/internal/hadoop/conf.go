package hadoop

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/colinmarc/hdfs/v2"

	"aibox/reader/source/internal/fsys"
)

// defaultNameNodePort is the port on which a NameNode listens by default.
const defaultNameNodePort = "8020"

// clusterConf is the configuration that belongs to one authority of hdfs:// URIs.
type clusterConf struct {
	authority string   // as in URIs; that of fs.defaultFS if the URI has none
	addresses []string // of the NameNodes, host:port
	kerberos  bool
	realm     string // of the NameNodes' principals; "": not given
	// protection is the weakest level that dfs.data.transfer.protection allows.
	protection string
	// keyProvider is the URI of the KMS. It is used if the NameNode names none, or if
	// ownKeyProvider is set.
	keyProvider    string
	ownKeyProvider bool
	base           hdfs.ClientOptions
}

// systemConfDir is where distributions of Hadoop keep their configuration. It is a
// variable so that tests can change it.
var systemConfDir = "/etc/hadoop/conf"

// confDir finds the directory with core-site.xml and hdfs-site.xml; "" if
// there is none.
func confDir(opts *Options) (string, error) {
	if opts.ConfDir != "" {
		return opts.ConfDir, nil
	}
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		return dir, nil
	}
	dirs := []string{systemConfDir}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		dirs = []string{filepath.Join(home, "etc/hadoop"), filepath.Join(home, "conf"), systemConfDir}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// loadClusterConf reads the configuration files for an authority. It does not connect
// to the cluster, so its errors are about the configuration alone.
func loadClusterConf(authority string, opts *Options) (*clusterConf, error) {
	fail := func(kind, err error, hint string) (*clusterConf, error) {
		return nil, &fsys.Error{Op: "open", URI: "hdfs://" + authority, Kind: kind, Err: err, Hint: hint}
	}
	dir, err := confDir(opts)
	if err != nil {
		return fail(fsys.ErrConfig, err, "")
	}
	conf := siteConf{}
	if dir != "" {
		found, err := loadSite(dir)
		if err != nil {
			return fail(fsys.ErrConfig, err, "")
		}
		if found == nil && opts.ConfDir != "" {
			return fail(fsys.ErrConfig, fmt.Errorf("%s holds neither core-site.xml nor hdfs-site.xml", dir), "check data.hdfs.conf_dir")
		}
		if found != nil {
			conf = found
		}
	}

	c := &clusterConf{authority: authority}
	if c.authority == "" {
		scheme, rest, _ := strings.Cut(conf["fs.defaultFS"], "://")
		if c.authority = strings.TrimRight(rest, "/"); !strings.EqualFold(scheme, "hdfs") || c.authority == "" {
			return fail(fsys.ErrConfig, errors.New("the URI names no NameNode, and core-site.xml has no fs.defaultFS that begins with hdfs://"),
				"write hdfs://namenode:port/path, or set data.hdfs.conf_dir")
		}
	}
	if c.addresses, err = nameNodeAddresses(c.authority, conf, dir); err != nil {
		return fail(fsys.ErrConfig, err, "")
	}

	c.kerberos = conf.is("hadoop.security.authentication", "kerberos") ||
		opts.KerberosPrincipal != "" || opts.KerberosKeytab != "" || opts.KerberosCCache != ""
	c.base = hdfs.ClientOptions{UseDatanodeHostname: conf.is("dfs.client.use.datanode.hostname", "true")}
	if !c.kerberos {
		c.base.User = hdfsUser(opts)
	} else {
		var name string
		name, c.realm, _ = strings.Cut(conf["dfs.namenode.kerberos.principal"], "@")
		// Nearly every cluster uses this one if hdfs-site.xml does not name it.
		c.base.KerberosServicePrincipleName = cmp.Or(name, "hdfs/_HOST")
	}
	c.protection = protection(conf)
	c.keyProvider, c.ownKeyProvider = conf["hadoop.security.key.provider.path"], conf.is("dfs.client.ignore.namenode.default.kms.uri", "true")
	return c, nil
}

// protection returns the weakest level in the list dfs.data.transfer.protection. The DataNode
// chooses among the levels that are no weaker.
func protection(conf siteConf) string {
	if conf.is("dfs.encrypt.data.transfer", "true") {
		return hdfs.DataTransferProtectionPrivacy
	}
	levels := strings.FieldsFunc(strings.ToLower(conf["dfs.data.transfer.protection"]),
		func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, level := range []string{hdfs.DataTransferProtectionAuthentication, hdfs.DataTransferProtectionIntegrity, hdfs.DataTransferProtectionPrivacy} {
		if slices.Contains(levels, level) {
			return level
		}
	}
	return ""
}

// nameNodeAddresses resolves an authority: a name service of hdfs-site.xml, or
// host[:port].
func nameNodeAddresses(authority string, conf siteConf, dir string) ([]string, error) {
	const rpc = "dfs.namenode.rpc-address."
	if ids := conf.list("dfs.ha.namenodes." + authority); len(ids) > 0 {
		var addresses []string
		for _, id := range ids {
			key := rpc + authority + "." + id
			address := conf[key]
			if address == "" {
				return nil, fmt.Errorf("name service %s: hdfs-site.xml in %s has no %s", authority, dir, key)
			}
			addresses = append(addresses, withPort(address))
		}
		return addresses, nil
	}
	if address := conf[rpc+authority]; address != "" {
		return []string{withPort(address)}, nil
	}
	if slices.Contains(conf.list("dfs.nameservices"), authority) {
		return nil, fmt.Errorf("name service %s: hdfs-site.xml in %s has neither dfs.ha.namenodes.%[1]s nor %s%[1]s", authority, dir, rpc)
	}
	return []string{withPort(authority)}, nil
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), defaultNameNodePort)
}

// hdfsUser returns the user name that is sent to HDFS without Kerberos.
func hdfsUser(opts *Options) string {
	if opts.User != "" {
		return opts.User
	}
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid%d", os.Getuid())
}
