package hdfstest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"

// haConf returns the part of the servers' configuration that describes an HA pair of NameNodes in
// separate processes. They share their edit log through a directory.
func (c *Cluster) haConf() map[string]string {
	conf := c.clientConf()
	conf["dfs.namenode.shared.edits.dir"] = "file://" + filepath.Join(c.dir, "dfs", "shared")
	conf["dfs.ha.standby.checkpoints"] = "false"
	return conf
}

// nameNodeConf returns the configuration of NameNode i of the pair.
func (c *Cluster) nameNodeConf(i int) map[string]string {
	conf := c.serverConf()
	maps.Copy(conf, c.haConf())
	id := fmt.Sprintf("nn%d", i+1)
	conf["dfs.ha.namenode.id"] = id
	conf["dfs.namenode.name.dir"] = c.nameDir(i)
	conf["dfs.namenode.http-address."+Nameservice+"."+id] = "127.0.0.1:0"
	return conf
}

func (c *Cluster) nameDir(i int) string { return filepath.Join(c.dir, "dfs", fmt.Sprintf("name%d", i)) }

// startNameNodes formats the first NameNode, copies its state to the second one and
// starts both, on standby.
func (c *Cluster) startNameNodes() error {
	p, err := c.java("format", nameNodeClass, append(options(c.nameNodeConf(0)), "-format", "-force", "-nonInteractive")...)
	if err != nil {
		return err
	}
	<-p.done
	if err := os.CopyFS(c.nameDir(1), os.DirFS(c.nameDir(0))); err != nil {
		return fmt.Errorf("%w\n%s", err, p.log())
	}
	c.nameNodes = make([]*process, len(c.ports))
	for i := range c.nameNodes { // without awaitPort: nothing has listened there yet
		if err := c.startNameNode(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startNameNode(i int) (err error) {
	c.nameNodes[i], err = c.java(fmt.Sprintf("namenode%d", i), nameNodeClass, options(c.nameNodeConf(i))...)
	return err
}

// StopNameNode stops a NameNode; StartNameNode starts it again on the same port.
func (c *Cluster) StopNameNode(t testing.TB, i int) {
	t.Helper()
	if c.cfg.SeparateNameNodes {
		c.nameNodes[i].kill()
		return
	}
	c.command(t, "stop-namenode", strconv.Itoa(i))
}

// StartNameNode starts a stopped NameNode. A NameNode in a separate process is then on
// standby.
func (c *Cluster) StartNameNode(t testing.TB, i int) {
	t.Helper()
	if c.cfg.SeparateNameNodes {
		err := awaitPort(fmt.Sprintf("localhost:%d", c.ports[i]))
		if err == nil {
			err = c.startNameNode(i)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	c.command(t, "start-namenode", strconv.Itoa(i))
}

// RestartNameNode stops the first NameNode and starts it again. It returns its error
// instead of failing the test, because tests call it from other goroutines, where
// t.Fatal is not allowed.
func (c *Cluster) RestartNameNode() error {
	if err := c.TryStopNameNode(); err != nil {
		return err
	}
	return c.TryStartNameNode()
}

// TryStopNameNode is the first half of RestartNameNode.
func (c *Cluster) TryStopNameNode() error {
	_, err := c.server.command("stop-namenode", "0")
	return err
}

// reportTime is how long a NameNode may take to start before the DataNodes report to it again.
const reportTime = 30 * time.Second

// TryStartNameNode is the second half of RestartNameNode. A DataNode's report to a starting
// NameNode may get lost, so DataNode processes are restarted if the start takes too long.
func (c *Cluster) TryStartNameNode() error {
	started := make(chan error, 1)
	go func() {
		_, err := c.server.command("start-namenode", "0")
		started <- err
	}()
	select {
	case err := <-started:
		return err
	case <-time.After(reportTime):
	}
	var errs []error
	for i, p := range c.dataNodes {
		select {
		case <-p.done: // the test has killed it
			continue
		default:
		}
		p.kill()
		err := awaitPort(c.listensAt(i))
		if err == nil {
			err = c.startDataNode(i)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, <-started)...)
}

// Failover makes NameNode to active and NameNode from standby.
func (c *Cluster) Failover(t testing.TB, from, to int) {
	t.Helper()
	c.command(t, "failover", strconv.Itoa(from), strconv.Itoa(to))
}

// Activate makes a standby NameNode active, if no other one is active.
func (c *Cluster) Activate(t testing.TB, i int) {
	t.Helper()
	c.command(t, "activate", strconv.Itoa(i))
}

// SafeMode makes the NameNode enter or leave its safe mode, in which nothing can be written.
func (c *Cluster) SafeMode(t testing.TB, enter bool) {
	t.Helper()
	c.command(t, "safemode", map[bool]string{true: "enter", false: "leave"}[enter])
}

// Observe makes a standby NameNode an observer, or an observer a standby again. An observer answers
// only clients that say what state they have seen.
func (c *Cluster) Observe(t testing.TB, i int, observer bool) {
	t.Helper()
	c.command(t, map[bool]string{true: "observer", false: "standby"}[observer], strconv.Itoa(i))
}

// TryActivate is Activate, but returns its error, since a NameNode that was just started refuses
// for a while.
func (c *Cluster) TryActivate(i int) error {
	_, err := c.server.command("activate", strconv.Itoa(i))
	return err
}

// HangNameNode hangs a NameNode process: it takes connections and answers nothing.
func (c *Cluster) HangNameNode(t testing.TB, i int) {
	t.Helper()
	if err := c.nameNode(t, i).hang(); err != nil {
		t.Fatal(err)
	}
}

// ContNameNode lets a hung NameNode go on.
func (c *Cluster) ContNameNode(t testing.TB, i int) {
	t.Helper()
	if err := c.nameNode(t, i).signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) nameNode(t testing.TB, i int) *process {
	t.Helper()
	if !c.cfg.SeparateNameNodes {
		t.Fatal(errors.New("hdfstest: the NameNodes of this cluster are not separate processes (Config.SeparateNameNodes)"))
	}
	return c.nameNodes[i]
}

// List returns the names of a directory's entries, including hidden ones.
func (c *Cluster) List(t testing.TB, remote string) []string {
	t.Helper()
	return strings.Fields(c.command(t, "ls", remote))
}

// SetQuota limits how many names a directory may have, including its own, and how many bytes its
// files may take with all replicas; -1 means no limit. It makes the directory if there is none.
func (c *Cluster) SetQuota(t testing.TB, remote string, names, bytes int64) {
	t.Helper()
	c.command(t, "quota", remote, fmt.Sprint(names), fmt.Sprint(bytes))
}

// Encrypt makes a directory an encryption zone (Config.Keys or Config.KMS). It makes the zone's key
// if there is none of that name.
func (c *Cluster) Encrypt(t testing.TB, remote, key string) {
	t.Helper()
	c.command(t, "encrypt", remote, key)
}

// ErasureCode makes a directory whose files are erasure coded. The policy is one of Hadoop's, such
// as "XOR-2-1-1024k", or has other numbers of blocks or bytes per cell, such as "RS-3-2-64k".
func (c *Cluster) ErasureCode(t testing.TB, remote, policy string) {
	t.Helper()
	c.command(t, "ec", remote, policy)
}
