package hadoop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// TestHDFSHA reads through a name service of core-site.xml and hdfs-site.xml
// while its NameNodes take turns. The cluster also encrypts all block data with
// keys and block tokens of the NameNodes, which needs no Kerberos and no setting
// of the client.
func TestHDFSHA(t *testing.T) {
	t.Parallel()
	c := hdfstest.Shared(t, "ha", hdfstest.Config{DataNodes: 1, HA: true, Conf: map[string]string{
		"dfs.block.access.token.enable":           "true",
		"dfs.encrypt.data.transfer":               "true",
		"dfs.namenode.state.context.enabled":      "true", // as where observers are used
		"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
	}})
	s, _ := hdfsSources(t, Options{ConfDir: c.ConfDir()})
	c.PutBytes(t, bigText(), "/ha/a", hdfstest.PutOptions{})
	for _, uri := range []string{"hdfs://" + hdfstest.Nameservice + "/ha/a", "hdfs:///ha/a"} {
		if f := mustExpand(t, s, uri)[0]; f.Size != int64(len(bigText())) {
			t.Errorf("%+v", f)
		}
	}
	f := mustExpand(t, s, c.URI("/ha/a"))[0]
	writeBack(t, s, c.URI("/ha/written"), bigText()[:3<<20+1])

	// An observer is no NameNode for us.
	c.Observe(t, 1, true)
	observed, _ := hdfsSources(t, Options{ConfDir: c.ConfDirWith(t, map[string]string{"dfs.ha.namenodes." + hdfstest.Nameservice: "nn2, nn1,"})})
	wantBytes(t, observed, f, 23<<20, bigText())
	c.Observe(t, 1, false)

	rest := func(from int64) chan error {
		done := make(chan error, 1)
		go func() {
			got, err := readRange(context.Background(), s, f, from)
			if err == nil && got != string(bigText()[from:]) {
				err = errors.New("bytes differ")
			}
			done <- err
		}()
		return done
	}

	t.Run("StaleTokens", func(t *testing.T) { staleTokens(t, c, f) })

	// Fail-over in mid-read: the reader at work, and one that starts during it.
	r, head := startRead(t, s, f)
	c.Failover(t, 0, 1)
	late := rest(23 << 20)
	finishRead(t, r, head)
	if err := <-late; err != nil {
		t.Error(err)
	}

	// Fail-over during an upload, which begins anew.
	upload := make(chan struct{})
	go func() {
		defer close(upload)
		writeBack(t, s, c.URI("/up/a"), bigText())
	}()
	c.Mkdir(t, "/up", 0o777)
	until(t, "the upload has begun", func() bool { return len(c.List(t, "/up")) > 0 })
	c.Failover(t, 1, 0)
	c.Failover(t, 0, 1)
	<-upload
	if left := c.List(t, "/up"); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}

	// That the NameNode listed first is on standby is no reason for a warning.
	fresh, log := hdfsSources(t, Options{ConfDir: c.ConfDir()})
	wantBytes(t, fresh, f, 23<<20, bigText())
	if text := log.String(); !strings.Contains(text, "another NameNode is used") || strings.Contains(text, "level=WARN") {
		t.Errorf("logged:\n%s", text)
	}

	// The active NameNode dies; nobody is active for a while.
	r, head = startRead(t, s, f)
	c.StopNameNode(t, 1)
	late = rest(23 << 20)
	time.Sleep(500 * time.Millisecond)
	c.Activate(t, 0)
	begin := time.Now()
	if err := <-late; err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > atOnce {
		t.Errorf("%v after the fail-over", d)
	}
	finishRead(t, r, head)
	wantBytes(t, s, mustExpand(t, s, c.URI("/ha/*"))[0], 0, bigText())
}

// staleTokens reads with block tokens, and with an encryption key, that are no
// longer valid: they are replaced without a word.
func staleTokens(t *testing.T, c *hdfstest.Cluster, f fsys.File) {
	s, log := hdfsSources(t, Options{ConfDir: c.ConfDir()})
	const life = 3 * time.Second
	c.SetTokenLife(t, life)
	r, head := startRead(t, s, f) // has located all blocks
	time.Sleep(life + time.Second)
	finishRead(t, r, head)
	c.SetTokenLife(t, time.Hour)

	for _, cluster := range s.clusters {
		wrong := *cluster.keys.key
		wrong.id += 1000
		cluster.keys.key = &wrong
	}
	wantBytes(t, s, f, 5<<20, bigText())
	for _, blame := range []string{"a DataNode failed", "a DataNode refused", "a replica is bad"} {
		if strings.Contains(log.String(), blame) {
			t.Errorf("a DataNode was blamed:\n%s", log)
		}
	}
}
