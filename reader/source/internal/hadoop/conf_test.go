package hadoop

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/reader/source/internal/fsys"
)

// confFiles writes hdfs-site.xml with the given keys and values.
func confFiles(t *testing.T, keysAndValues ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for i := 0; i < len(keysAndValues); i += 2 {
		b.WriteString("<property><name>" + keysAndValues[i] + "</name><value>" + keysAndValues[i+1] + "</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestClusterConf(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_HOME", "")
	t.Setenv("DOMAIN", "example.net")
	dir := confFiles(t,
		"fs.defaultFS", "hdfs://prod/",
		"dfs.nameservices", "prod, single,broken",
		"dfs.ha.namenodes.prod", "b, a",
		"dfs.namenode.rpc-address.prod.a", "nn-a.${env.DOMAIN}:9000",
		"dfs.namenode.rpc-address.prod.b", "\n  ${host.b}:9001\n",
		"host.b", "nn-b.${env.DOMAIN}",
		"dfs.namenode.rpc-address.single", "solo",
	)
	for authority, want := range map[string]string{
		"prod":           "nn-b.example.net:9001 nn-a.example.net:9000", // in the order of the names
		"":               "nn-b.example.net:9001 nn-a.example.net:9000",
		"single":         "solo:8020",
		"other:1234":     "other:1234",
		"other":          "other:8020",
		"[2001:db8::1]":  "[2001:db8::1]:8020",
		"broken":         "",
		"127.0.0.1:9000": "127.0.0.1:9000",
	} {
		c, err := loadClusterConf(authority, &Options{ConfDir: dir})
		if want == "" {
			if !errors.Is(err, fsys.ErrConfig) || !strings.Contains(err.Error(), "dfs.ha.namenodes.broken") {
				t.Errorf("%s: error %v", authority, err)
			}
		} else if err != nil || !slices.Equal(c.addresses, strings.Fields(want)) {
			t.Errorf("%s: %+v, %v; want %s", authority, c, err, want)
		}
	}
	upper := confFiles(t, "fs.defaultFS", "HDFS://nn:8020")
	if c, err := loadClusterConf("", &Options{ConfDir: upper}); err != nil || c.authority != "nn:8020" {
		t.Errorf("fs.defaultFS in upper case: %+v, %v", c, err)
	}
	if _, err := loadClusterConf("", &Options{}); !errors.Is(err, fsys.ErrConfig) {
		t.Errorf("no default file system: %v", err)
	}

	old := systemConfDir
	t.Cleanup(func() { systemConfDir = old })
	systemConfDir = dir
	if c, err := loadClusterConf("", &Options{}); err != nil || c.authority != "prod" {
		t.Errorf("by the system's directory: %+v, %v", c, err)
	}
	systemConfDir = filepath.Join(dir, "none")

	t.Setenv("HADOOP_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "etc", "hadoop")); err != nil {
		t.Fatal(err)
	}
	if c, err := loadClusterConf("", &Options{}); err != nil || c.authority != "prod" {
		t.Errorf("by HADOOP_HOME: %+v, %v", c, err)
	}
}

func TestHDFSUser(t *testing.T) {
	t.Setenv("HADOOP_USER_NAME", "alice")
	for user, want := range map[string]string{"": "alice", "bob": "bob"} {
		c, err := loadClusterConf("nn", &Options{User: user})
		if err != nil || c.base.User != want {
			t.Errorf("user %q: %+v, %v", user, c, err)
		}
	}
}

func TestProtection(t *testing.T) {
	for conf, want := range map[string]string{
		"":                                   "",
		"authentication":                     "authentication",
		"privacy, integrity, authentication": "authentication",
		"integrity,privacy":                  "integrity",
		"Privacy,\u00a0":                     "privacy",
		"integrity":                          "integrity",
	} {
		if got := protection(siteConf{"dfs.data.transfer.protection": conf}); got != want {
			t.Errorf("%q: %q, want %q", conf, got, want)
		}
	}
	got := protection(siteConf{"dfs.data.transfer.protection": "authentication", "dfs.encrypt.data.transfer": "true"})
	if got != "privacy" {
		t.Errorf("dfs.encrypt.data.transfer: %q", got)
	}
}
