package hadoop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"aibox/reader/source/internal/fsys"
)

// defaultNameNodePort is the port on which a NameNode listens by default.
const defaultNameNodePort = "8020"

// clusterConf is the configuration that belongs to one authority of hdfs:// URIs.
type clusterConf struct {
	authority string   // as in URIs; the default file system's for ""
	addresses []string // of the NameNodes, host:port
	kerberos  bool
	// protection is the weakest level that dfs.data.transfer.protection allows.
	protection string
	base       hdfs.ClientOptions
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
	var conf hadoopconf.HadoopConf
	if dir != "" {
		if conf, err = hadoopconf.Load(dir); err != nil {
			return fail(fsys.ErrConfig, err, "")
		}
		if conf == nil && opts.ConfDir != "" {
			return fail(fsys.ErrConfig, fmt.Errorf("%s holds neither core-site.xml nor hdfs-site.xml", dir), "check data.hdfs.conf_dir")
		}
	}
	if conf == nil {
		conf = hadoopconf.HadoopConf{}
	}
	substitute(conf)

	c := &clusterConf{authority: authority}
	if c.authority == "" {
		name := conf["fs.defaultFS"]
		if name == "" {
			name = conf["fs.default.name"]
		}
		scheme, rest, _ := strings.Cut(name, "://")
		if c.authority = strings.TrimRight(rest, "/"); !strings.EqualFold(scheme, "hdfs") || c.authority == "" {
			return fail(fsys.ErrConfig, errors.New("the URI names no NameNode, and core-site.xml has no fs.defaultFS that begins with hdfs://"),
				"write hdfs://namenode:port/path, or set data.hdfs.conf_dir")
		}
	}
	if c.addresses, err = nameNodeAddresses(c.authority, conf, dir); err != nil {
		return fail(fsys.ErrConfig, err, "")
	}

	c.base = hdfs.ClientOptionsFromConf(conf)
	c.base.Addresses = c.addresses
	c.kerberos = c.base.KerberosClient != nil ||
		opts.KerberosPrincipal != "" || opts.KerberosKeytab != "" || opts.KerberosCCache != ""
	c.base.KerberosClient = nil
	if !c.kerberos {
		c.base.User = hdfsUser(opts)
	} else if c.base.KerberosServicePrincipleName == "" {
		// hdfs-site.xml does not name the principal; nearly every cluster uses this one.
		c.base.KerberosServicePrincipleName = "hdfs/_HOST"
	}
	c.protection = protection(conf)
	c.base.DataTransferProtection = c.protection
	return c, nil
}

// protection is the weakest level of dfs.data.transfer.protection, which is a
// list: the DataNode chooses among those that are no weaker.
func protection(conf hadoopconf.HadoopConf) string {
	if strings.EqualFold(strings.TrimSpace(conf["dfs.encrypt.data.transfer"]), "true") {
		return hdfs.DataTransferProtectionPrivacy
	}
	levels := strings.FieldsFunc(strings.ToLower(conf["dfs.data.transfer.protection"]),
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	for _, level := range []string{hdfs.DataTransferProtectionAuthentication, hdfs.DataTransferProtectionIntegrity, hdfs.DataTransferProtectionPrivacy} {
		if slices.Contains(levels, level) {
			return level
		}
	}
	return ""
}

// nameNodeAddresses resolves an authority: a name service of hdfs-site.xml, or
// host[:port].
func nameNodeAddresses(authority string, conf hadoopconf.HadoopConf, dir string) ([]string, error) {
	const rpc = "dfs.namenode.rpc-address."
	if ids := conf["dfs.ha.namenodes."+authority]; ids != "" {
		var addresses []string
		for _, id := range strings.Split(ids, ",") {
			key := rpc + authority + "." + strings.TrimSpace(id)
			address := strings.TrimSpace(conf[key])
			if address == "" {
				return nil, fmt.Errorf("name service %s: hdfs-site.xml in %s has no %s", authority, dir, key)
			}
			addresses = append(addresses, withPort(address))
		}
		return addresses, nil
	}
	if address := strings.TrimSpace(conf[rpc+authority]); address != "" {
		return []string{withPort(address)}, nil
	}
	for _, ns := range strings.Split(conf["dfs.nameservices"], ",") {
		if strings.TrimSpace(ns) == authority {
			return nil, fmt.Errorf("name service %s: hdfs-site.xml in %s has neither dfs.ha.namenodes.%[1]s nor %s%[1]s", authority, dir, rpc)
		}
	}
	return []string{withPort(authority)}, nil
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), defaultNameNodePort)
}

var confVariable = regexp.MustCompile(`\$\{([^{}$\s]+)\}`)

// substitute replaces ${key} and ${env.NAME} in values, as Hadoop does.
func substitute(conf hadoopconf.HadoopConf) {
	const maxDepth = 20 // as in Hadoop
	for key, value := range conf {
		value = strings.TrimSpace(value)
		for range maxDepth {
			next := confVariable.ReplaceAllStringFunc(value, func(v string) string {
				name := v[2 : len(v)-1]
				if env, ok := strings.CutPrefix(name, "env."); ok {
					return os.Getenv(env)
				}
				if s, ok := conf[name]; ok {
					return strings.TrimSpace(s)
				}
				return v
			})
			if next == value {
				break
			}
			value = next
		}
		conf[key] = value
	}
}

// hdfsUser is the user name that is sent to HDFS without Kerberos.
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
