package hadoop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeSite(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSite(t *testing.T) {
	t.Setenv("AIBOX_SET", "set")
	t.Setenv("AIBOX_EMPTY", "")
	conf, err := loadSite(writeSite(t, map[string]string{
		"core-site.xml": `<?xml version="1.0" encoding="ISO-8859-1"?>
<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
  <!-- <property><name>comment</name><value>x</value></property> -->
  <property><name> fs.default.name </name><value> hdfs://old </value><final>true</final></property>
  <property name="attribute" value="${env.AIBOX_SET}"/>
  <property><name>no.value</name></property>
  <xi:include href="more.xml"/>
  <xi:include href="none.xml"><xi:fallback><property><name>fallback</name><value>used</value></property></xi:fallback></xi:include>
  <xi:include href="more.xml"><xi:fallback><property><name>no.fallback</name><value>x</value></property></xi:fallback></xi:include>
</configuration>`,
		"more.xml": `<configuration><property><name>included</name><value>${dfs.nameservices}-${none}</value></property>
  <configuration><property><name>nested</name><value>1</value></property></configuration></configuration>`,
		"hdfs-site.xml": `<configuration>
  <property><name>fs.defaultFS</name><value>hdfs://new</value></property>
  <property><name>dfs.federation.nameservices</name><value><![CDATA[a, b,]]></value></property>
  <property><name>included2</name><value>&lt;${included}&gt;</value></property>
  <property><name>defaults</name><value>${env.AIBOX_NONE:-1}${env.AIBOX_EMPTY:-2}${env.AIBOX_EMPTY-3}${env.AIBOX_NONE-4}${env.AIBOX_SET:-5}${env.AIBOX_NONE}</value></property>
  <property><name>circle</name><value>${circle}</value></property>
</configuration>`,
		"mapred-site.xml": `<configuration><property><name>attribute</name><value>mapred</value></property></configuration>`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"fs.defaultFS": "hdfs://old", "attribute": "set", "included": "a, b,-${none}", "nested": "1", "fallback": "used",
		"dfs.nameservices": "a, b,", "included2": "<a, b,-${none}>", "defaults": "124set${env.AIBOX_NONE}", "circle": "${circle}",
	} {
		if got, ok := conf[key]; !ok || got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
		delete(conf, key)
	}
	if len(conf) > 0 {
		t.Errorf("also %v", conf)
	}
}

func TestSiteFaults(t *testing.T) {
	for text, words := range map[string]string{
		`<configuration><include href="http://conf/x.xml"/></configuration>`:         "only files can be included",
		`<configuration><include href="none.xml"/></configuration>`:                  "none.xml: no such file",
		`<configuration><include href="core-site.xml"/></configuration>`:             "nested more than",
		`<configuration><property><name>a</name><value>b</property></configuration>`: "core-site.xml: XML syntax error on line 1",
		`<configuration><property><name>a</name>`:                                    "core-site.xml: XML syntax error",
	} {
		if _, err := loadSite(writeSite(t, map[string]string{"core-site.xml": text})); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
	if conf, err := loadSite(t.TempDir()); conf != nil || err != nil {
		t.Errorf("no files: %v, %v", conf, err)
	}
}

// TestOddDefaultFS has default file systems that are no URLs, which matter only where a URI names no other.
func TestOddDefaultFS(t *testing.T) {
	for _, name := range []string{"hdfs://${none}:8020", "hdfs://nn:port", "hdfs://a b", "viewfs://c", "%"} {
		c, err := loadClusterConf("nn", &Options{ConfDir: confFiles(t, "fs.defaultFS", name, "dfs.client.use.datanode.hostname", "TRUE")})
		if err != nil || c.addresses[0] != "nn:8020" || !c.base.UseDatanodeHostname {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
