package hdfstest

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"
)

// kms is a key management server in a process of its own.
type kms struct {
	proc *process
	port int
	dir  string // of its configuration
}

// startKMS starts the key management server. It decrypts keys of files only for the users of the
// cluster and for alice.
func (c *Cluster) startKMS() error {
	dir := filepath.Join(c.dir, "kms")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	port, err := c.freePorts(1)
	if err != nil {
		return err
	}
	site := map[string]string{
		"hadoop.kms.key.provider.uri": "jceks://file@" + filepath.Join(c.dir, "keys.jceks"),
		"hadoop.kms.http.host":        "localhost",
		"hadoop.kms.http.port":        fmt.Sprint(port[0]),
		"hadoop.http.temp.dir":        filepath.Join(dir, "tmp"),
	}
	if c.kdc != nil {
		keytab, err := c.kdc.keytab("HTTP/localhost", time.Hour)
		if err != nil {
			return err
		}
		maps.Copy(site, map[string]string{
			"hadoop.kms.authentication.type":               "kerberos",
			"hadoop.kms.authentication.kerberos.principal": "HTTP/localhost@" + Realm,
			"hadoop.kms.authentication.kerberos.keytab":    keytab,
			"hadoop.security.authentication":               "kerberos",
		})
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	acls := map[string]string{"hadoop.kms.acl.DECRYPT_EEK": me.Username + ",hdfs,alice"}
	for _, operation := range []string{"MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ"} {
		acls["default.key.acl."+operation] = "*"
	}
	for name, conf := range map[string]map[string]string{"kms-site.xml": site, "kms-acls.xml": acls, "core-site.xml": {}} {
		if err := writeSite(filepath.Join(dir, name), conf); err != nil {
			return err
		}
	}
	log := filepath.Join(dir, "log4j.properties")
	if err := os.WriteFile(log, []byte("log4j.rootLogger=WARN,stderr\nlog4j.appender.stderr=org.apache.log4j.ConsoleAppender\n"+
		"log4j.appender.stderr.target=System.err\nlog4j.appender.stderr.layout=org.apache.log4j.SimpleLayout\n"), 0o644); err != nil {
		return err
	}
	c.kms = &kms{port: port[0], dir: dir}
	return c.runKMS()
}

// runKMS starts the key management server's process and waits until it listens.
func (c *Cluster) runKMS() error {
	path, err := kmsClassPath()
	if err != nil {
		return err
	}
	p, err := c.javaWith("kms", path, "--add-opens=java.base/java.lang=ALL-UNNAMED", // its JAXB needs that
		"-Dlog4j.configuration=file:"+filepath.Join(c.kms.dir, "log4j.properties"), "-Dkms.config.dir="+c.kms.dir,
		"org.apache.hadoop.crypto.key.kms.server.KMSWebServer")
	if err != nil {
		return err
	}
	c.kms.proc = p
	return awaitServer(p, c.kms.address())
}

func (k *kms) address() string { return fmt.Sprintf("localhost:%d", k.port) }

// KMSURI returns the URI of the key management server, with the other hosts before its own.
func (c *Cluster) KMSURI(others string) string {
	return "kms://http@" + others + c.kms.address() + "/kms"
}

// KillKMS kills the key management server; StartKMS starts it again.
func (c *Cluster) KillKMS() { c.kms.proc.kill() }

// StartKMS starts the key management server again. It returns its error, since tests call it from
// other goroutines.
func (c *Cluster) StartKMS() error {
	if err := awaitPort(c.kms.address()); err != nil {
		return err
	}
	return c.runKMS()
}

// HangKMS hangs the key management server: it takes connections, and answers nothing.
func (c *Cluster) HangKMS(t testing.TB) {
	t.Helper()
	if err := c.kms.proc.hang(); err != nil {
		t.Fatal(err)
	}
}

// DeleteKey deletes a key, without which files of its zones cannot be read.
func (c *Cluster) DeleteKey(t testing.TB, key string) {
	t.Helper()
	c.command(t, "delete-key", key)
}
