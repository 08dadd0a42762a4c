package hdfstest

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nameservice is the name of an HA cluster.
const Nameservice = "mycluster"

// serverConf returns the configuration of all servers.
func (c *Cluster) serverConf() map[string]string {
	conf := map[string]string{
		"hdfs.minidfs.basedir": filepath.Join(c.dir, "dfs"),
		"dfs.replication":      fmt.Sprint(max(1, c.cfg.DataNodes)),
		// Short intervals are fine, since everything runs on one machine.
		"dfs.heartbeat.interval":                        "1",
		"dfs.namenode.safemode.extension":               "0",
		"dfs.namenode.fs-limits.min-block-size":         "512",
		"dfs.namenode.delegation.token.always-use":      "false",
		"dfs.blockreport.initialDelay":                  "0",
		"dfs.namenode.decommission.interval":            "1",
		"dfs.datanode.scan.period.hours":                "-1", // without the scanner, a corrupted replica stays until it is read
		"dfs.datanode.directoryscan.interval":           "-1",
		"dfs.namenode.redundancy.interval.seconds":      "3600", // a lost replica is not replaced during a test
		"dfs.namenode.avoid.read.stale.datanode":        "false",
		"ipc.client.connect.max.retries.on.timeouts":    "2",
		"dfs.namenode.startup.delay.block.deletion.sec": "0",
		"dfs.namenode.resource.du.reserved":             "0", // otherwise a nearly full disk means safe mode
	}
	if c.kdc != nil {
		maps.Copy(conf, map[string]string{
			"hadoop.security.authentication":                  "kerberos",
			"hadoop.security.authorization":                   "true",
			"dfs.namenode.kerberos.principal":                 "hdfs/localhost@" + Realm,
			"dfs.namenode.keytab.file":                        c.serviceKeytab,
			"dfs.datanode.kerberos.principal":                 "hdfs/localhost@" + Realm,
			"dfs.datanode.keytab.file":                        c.serviceKeytab,
			"dfs.web.authentication.kerberos.principal":       "hdfs/localhost@" + Realm,
			"dfs.web.authentication.kerberos.keytab":          c.serviceKeytab,
			"dfs.namenode.kerberos.internal.spnego.principal": "hdfs/localhost@" + Realm,
			"dfs.block.access.token.enable":                   "true",
			"ignore.secure.ports.for.testing":                 "true",
			"dfs.data.transfer.protection":                    "authentication,integrity,privacy",
		})
	}
	if c.cfg.Keys {
		conf["hadoop.security.key.provider.path"] = "jceks://file" + filepath.Join(c.dir, "keys.jceks")
	}
	if c.cfg.KMS {
		conf["hadoop.security.key.provider.path"] = c.KMSURI("")
	}
	maps.Copy(conf, c.cfg.Conf)
	return conf
}

// clientConf returns the settings that a user would have in core-site.xml and hdfs-site.xml.
func (c *Cluster) clientConf() map[string]string {
	conf := map[string]string{"fs.defaultFS": c.URI("")}
	if c.cfg.HA {
		conf["dfs.nameservices"] = Nameservice
		var names []string
		for i, p := range c.ports {
			name := fmt.Sprintf("nn%d", i+1)
			names = append(names, name)
			conf["dfs.namenode.rpc-address."+Nameservice+"."+name] = fmt.Sprintf("localhost:%d", p)
		}
		conf["dfs.ha.namenodes."+Nameservice] = strings.Join(names, ",")
		conf["dfs.client.failover.proxy.provider."+Nameservice] =
			"org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
	}
	if c.kdc != nil {
		conf["hadoop.security.authentication"] = "kerberos"
		conf["dfs.namenode.kerberos.principal"] = "hdfs/_HOST@" + Realm
		conf["dfs.data.transfer.protection"] = "authentication,integrity,privacy"
	}
	return conf
}

// ConfDir returns a directory with core-site.xml and hdfs-site.xml for clients.
func (c *Cluster) ConfDir() string { return c.confDir }

// ConfDirWith is ConfDir with some keys changed, or removed if their new value is empty.
func (c *Cluster) ConfDirWith(t testing.TB, changes map[string]string) string {
	t.Helper()
	conf := c.clientConf()
	for k, v := range changes {
		if conf[k] = v; v == "" {
			delete(conf, k)
		}
	}
	dir := t.TempDir()
	if err := writeConf(dir, conf); err != nil {
		t.Fatal(err)
	}
	return dir
}

type xmlProperty struct {
	Name  string `xml:"name"`
	Value string `xml:"value"`
}

// writeConf writes the two files; "dfs." keys belong to hdfs-site.xml.
func writeConf(dir string, conf map[string]string) error {
	core, site := map[string]string{}, map[string]string{}
	for k, v := range conf {
		if strings.HasPrefix(k, "dfs.") {
			site[k] = v
		} else {
			core[k] = v
		}
	}
	if err := writeSite(filepath.Join(dir, "core-site.xml"), core); err != nil {
		return err
	}
	return writeSite(filepath.Join(dir, "hdfs-site.xml"), site)
}

// writeSite writes one file of Hadoop's configuration.
func writeSite(path string, conf map[string]string) error {
	var site struct {
		XMLName    xml.Name      `xml:"configuration"`
		Properties []xmlProperty `xml:"property"`
	}
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		site.Properties = append(site.Properties, xmlProperty{k, conf[k]})
	}
	out, err := xml.MarshalIndent(site, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), out...), 0o644)
}

// writeProperties writes a Java properties file.
func writeProperties(path string, props map[string]string) error {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", strings.ReplaceAll(k, ":", `\:`), strings.ReplaceAll(props[k], `\`, `\\`))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
