package hdfstest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Config describes a cluster.
type Config struct {
	// DataNodes holds the number of DataNodes.
	DataNodes int
	// Separate makes each DataNode a process of its own, which can be killed
	// and hung.
	Separate bool
	// HA makes a pair of NameNodes behind the name service Nameservice.
	HA bool
	// SeparateNameNodes makes each NameNode of an HA pair a process of its own,
	// which can be killed and hung. It requires Separate, and no Kerberos.
	SeparateNameNodes bool
	// Proxied puts a proxy before each DataNode, so that the DataNode can be made slow and its
	// streams be stopped at a byte. It requires Separate.
	Proxied bool
	// Kerberos starts a KDC and secures the cluster with it.
	Kerberos bool
	// Keys and KMS make encryption zones possible. With Keys, the keys are with the NameNode, of
	// which there must be only one; with KMS, they are with a key management server.
	Keys, KMS bool
	// Conf holds further keys of the servers' configuration.
	Conf map[string]string
	// DataNodeConf holds keys for single DataNodes; not with Separate.
	DataNodeConf []map[string]string
}

// Cluster is a running HDFS. Its methods fail the test they are given.
type Cluster struct {
	cfg           Config
	dir           string
	confDir       string
	ports         []int
	server        *process
	nameNodes     []*process // SeparateNameNodes
	dataNodes     []*process // Separate
	dataPorts     []int      // Separate
	proxies       []*proxy   // Proxied
	moment        atomic.Pointer[moment]
	kdc           *KDC
	kms           *kms
	serviceKeytab string
	findPorts     portFinder
	reserved      []reservedPort
	startup       time.Duration
}

// Start starts a cluster for one test and ends it with the test.
func Start(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	requireFor(t, cfg)
	c, err := start(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

// isolate keeps the tests from the configuration of this machine's Hadoop.
var isolate = sync.OnceFunc(func() {
	if os.Getenv("HADOOP_CONF_DIR") == "" {
		_ = os.Setenv("HADOOP_CONF_DIR", "/nonexistent") // fails only if the name is not valid
	}
})

// requireFor skips or fails the test if something is not installed.
func requireFor(t testing.TB, cfg Config) {
	t.Helper()
	isolate()
	requireTools(t, "java", "mvn")
	if cfg.Kerberos {
		requireTools(t, "krb5kdc", "kdb5_util", "kadmin.local", "kinit")
	}
	if _, err := buildClassPath(); err != nil {
		unavailable(t, "the mini cluster could not be built: %v", err)
	}
	if cfg.KMS {
		if _, err := kmsClassPath(); err != nil {
			unavailable(t, "the key management server could not be had: %v", err)
		}
	}
}

func start(dir string, cfg Config) (*Cluster, error) {
	return retryPorts(dir, func(dir string) (*Cluster, error) { return startOnce(dir, cfg, reservePorts) })
}

func startOnce(dir string, cfg Config, findPorts portFinder) (_ *Cluster, err error) {
	begin := time.Now()
	c := &Cluster{cfg: cfg, dir: dir, findPorts: findPorts, confDir: filepath.Join(dir, "conf")}
	defer func() {
		if err != nil {
			c.stop()
			// A server whose port is taken does not always log that.
			if slices.ContainsFunc(c.reserved, func(r reservedPort) bool { return taken(r.port) }) {
				err = fmt.Errorf("%w: %w", errPortTaken, err)
			}
		}
	}()
	if err := os.MkdirAll(c.confDir, 0o755); err != nil {
		return nil, err
	}
	if cfg.Kerberos {
		if err := c.startKDC(); err != nil {
			return nil, err
		}
	}
	if cfg.KMS {
		if err := c.startKMS(); err != nil {
			return nil, err
		}
	}
	nameNodes := 1
	if cfg.HA {
		nameNodes = 2
	}
	if c.ports, err = c.freePorts(nameNodes); err != nil {
		return nil, err
	}
	if err := writeConf(c.confDir, c.clientConf()); err != nil {
		return nil, err
	}
	if cfg.SeparateNameNodes {
		if err := c.startNameNodes(); err != nil {
			return nil, err
		}
	}
	propFile := filepath.Join(dir, "cluster.properties")
	if err := writeProperties(propFile, c.properties()); err != nil {
		return nil, err
	}
	if c.server, err = c.java("cluster", "TestCluster", propFile); err != nil {
		return nil, err
	}
	ctx, cancel := waiting(c.nameNodes)
	defer cancel()
	if line, err := c.server.readLine(ctx); err != nil {
		return nil, err
	} else if line != "ready" {
		return nil, fmt.Errorf("cluster says %q\n%s", line, c.server.log())
	}
	if cfg.Separate {
		if err := c.startDataNodes(); err != nil {
			return nil, err
		}
	}
	c.startup = time.Since(begin)
	return c, nil
}

// startKDC starts a KDC, and makes the keytab of the servers.
func (c *Cluster) startKDC() error {
	dir := filepath.Join(c.dir, "kdc")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	port, err := c.freePorts(1)
	if err != nil {
		return err
	}
	if c.kdc, err = startKDC(dir, port[0]); err != nil {
		return err
	}
	c.serviceKeytab, err = c.kdc.keytab("hdfs/localhost", time.Hour)
	return err
}

// properties returns the properties for TestCluster.
func (c *Cluster) properties() map[string]string {
	props := c.serverConf()
	var ports []string
	for _, p := range c.ports {
		ports = append(ports, strconv.Itoa(p))
	}
	props["test.namenode.ports"] = strings.Join(ports, ",")
	if c.cfg.HA {
		props["test.nameservice"] = Nameservice
	}
	if !c.cfg.Separate {
		props["test.datanodes"] = strconv.Itoa(c.cfg.DataNodes)
		for i, conf := range c.cfg.DataNodeConf {
			for k, v := range conf {
				props[fmt.Sprintf("test.dn.%d.%s", i, k)] = v
			}
		}
	}
	if c.cfg.SeparateNameNodes {
		maps.Copy(props, c.haConf())
		props["test.external"] = "true"
	}
	return props
}

// startDataNodes starts the DataNodes in processes of their own, and waits until the NameNodes know
// them.
func (c *Cluster) startDataNodes() (err error) {
	c.dataNodes = make([]*process, c.cfg.DataNodes)
	if c.dataPorts, err = c.freePorts(c.cfg.DataNodes); err != nil {
		return err
	}
	for i := range c.dataNodes {
		if c.cfg.Proxied {
			p, err := c.startProxy(i)
			if err != nil {
				return err
			}
			c.proxies = append(c.proxies, p)
		}
		if err := c.startDataNode(i); err != nil {
			return err
		}
	}
	_, err = c.server.commandWith(slices.Concat(c.nameNodes, c.dataNodes), "wait-datanodes", strconv.Itoa(c.cfg.DataNodes))
	return err
}

// freePorts reserves ports for the life of the cluster.
func (c *Cluster) freePorts(n int) ([]int, error) {
	reserved, err := c.findPorts(n)
	c.reserved = append(c.reserved, reserved...)
	var ports []int
	for _, r := range reserved {
		ports = append(ports, r.port)
	}
	return ports, err
}

// java runs a main class of the mini cluster.
func (c *Cluster) java(name, class string, args ...string) (*process, error) {
	path, err := buildClassPath()
	if err != nil {
		return nil, err
	}
	return c.javaWith(name, path, append([]string{class}, args...)...)
}

// javaWith runs Java with a class path and further arguments, which include the class.
func (c *Cluster) javaWith(name, path string, args ...string) (*process, error) {
	flags := slices.Clone(javaFlags)
	if c.kdc != nil {
		flags = append(flags, "-Djava.security.krb5.conf="+c.kdc.Krb5Conf())
	}
	flags = append(flags, "-cp", path)
	return startProcess(c.dir, name, nil, "java", append(flags, args...)...)
}

// listensAt returns the address at which a DataNode listens.
func (c *Cluster) listensAt(i int) string {
	host := "127.0.0.1"
	if c.cfg.Proxied {
		host = backendHost
	}
	return fmt.Sprintf("%s:%d", host, c.dataPorts[i])
}

func (c *Cluster) startDataNode(i int) error {
	conf := c.serverConf()
	conf["fs.defaultFS"] = fmt.Sprintf("hdfs://127.0.0.1:%d", c.ports[0])
	if c.cfg.SeparateNameNodes {
		maps.Copy(conf, c.haConf())
	}
	maps.Copy(conf, map[string]string{
		"dfs.datanode.data.dir":      filepath.Join(c.dir, "dfs", "data", fmt.Sprintf("dn%d", i)),
		"dfs.datanode.address":       c.listensAt(i),
		"dfs.datanode.ipc.address":   "127.0.0.1:0",
		"dfs.datanode.http.address":  "127.0.0.1:0",
		"dfs.datanode.data.dir.perm": "755",
	})
	p, err := c.java(fmt.Sprintf("datanode%d", i), "org.apache.hadoop.hdfs.server.datanode.DataNode", options(conf)...)
	c.dataNodes[i] = p
	return err
}

// options returns the command-line options that give a Hadoop program its configuration.
func options(conf map[string]string) []string {
	var args []string
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		args = append(args, "-D", k+"="+conf[k])
	}
	return args
}

func (c *Cluster) stop() {
	for _, p := range slices.Concat(c.dataNodes, c.nameNodes, []*process{c.server}) {
		if p != nil {
			p.kill()
		}
	}
	for _, p := range c.proxies {
		_ = p.listener.Close() // nothing was written
	}
	if c.kms != nil && c.kms.proc != nil {
		c.kms.proc.kill()
	}
	if c.kdc != nil {
		c.kdc.proc.kill()
	}
	for _, r := range c.reserved {
		_ = r.holder.Close() // as above
	}
}

// Startup returns how long the cluster took to start.
func (c *Cluster) Startup() time.Duration { return c.startup }

// KDC returns the cluster's KDC.
func (c *Cluster) KDC() *KDC { return c.kdc }

// Addr returns the (first) NameNode's host:port.
func (c *Cluster) Addr() string { return fmt.Sprintf("localhost:%d", c.ports[0]) }

// DataNodeAddr returns the host:port from which a DataNode process serves blocks.
func (c *Cluster) DataNodeAddr(i int) string { return fmt.Sprintf("127.0.0.1:%d", c.dataPorts[i]) }

// SetTokenLife makes the NameNodes hand out block tokens that expire after life.
func (c *Cluster) SetTokenLife(t testing.TB, life time.Duration) {
	t.Helper()
	c.command(t, "token-life", strconv.FormatInt(life.Milliseconds(), 10))
}

// WaitDataNodes waits until n DataNodes have registered with the NameNode.
func (c *Cluster) WaitDataNodes(t testing.TB, n int) {
	t.Helper()
	c.command(t, "wait-datanodes", strconv.Itoa(n))
}

// URI returns the hdfs:// URI of an absolute path.
func (c *Cluster) URI(path string) string {
	if c.cfg.HA {
		return "hdfs://" + Nameservice + path
	}
	return "hdfs://" + c.Addr() + path
}

func (c *Cluster) command(t testing.TB, words ...string) string {
	t.Helper()
	out, err := c.server.command(words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// PutOptions says how a file is stored; zero values are defaults.
type PutOptions struct {
	Replication   int   // default: the number of DataNodes
	BlockBytes    int64 // default: 1 MiB
	ChecksumBytes int   // bytes per checksum; default: 512, as in HDFS
	DataNode      int   // 1 + the DataNode of the first replica; 0: any
}

// Put copies a local file into HDFS.
func (c *Cluster) Put(t testing.TB, local, remote string, o PutOptions) {
	t.Helper()
	if o.Replication == 0 {
		o.Replication = c.cfg.DataNodes
	}
	if o.BlockBytes == 0 {
		o.BlockBytes = 1 << 20
	}
	if o.ChecksumBytes == 0 {
		o.ChecksumBytes = 512
	}
	c.command(t, "put", local, remote, strconv.Itoa(o.Replication), strconv.FormatInt(o.BlockBytes, 10),
		strconv.Itoa(o.ChecksumBytes), strconv.Itoa(o.DataNode-1))
}

// PutBytes stores data as a file.
func (c *Cluster) PutBytes(t testing.TB, data []byte, remote string, o PutOptions) {
	t.Helper()
	local := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(local, data, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Put(t, local, remote, o)
}

// OpenForWriting creates a file, writes n zero bytes, makes them visible to
// readers and keeps the file open until CloseFile.
func (c *Cluster) OpenForWriting(t testing.TB, remote string, n int) {
	t.Helper()
	c.command(t, "open", remote, strconv.Itoa(n))
}

// OpenForAppending is OpenForWriting for a file that exists.
func (c *Cluster) OpenForAppending(t testing.TB, remote string, n int) {
	t.Helper()
	c.command(t, "append", remote, strconv.Itoa(n))
}

// Shell runs `hdfs dfs` with these arguments, as the user of the cluster.
func (c *Cluster) Shell(t testing.TB, args ...string) {
	t.Helper()
	c.command(t, append([]string{"shell"}, args...)...)
}

// AllowSnapshots lets snapshots be made of a directory.
func (c *Cluster) AllowSnapshots(t testing.TB, remote string) {
	t.Helper()
	c.command(t, "allow-snapshots", remote)
}

// Symlink makes a symbolic link. In Hadoop, only FileContext and WebHDFS can do that.
func (c *Cluster) Symlink(t testing.TB, target, link string) {
	t.Helper()
	c.command(t, "symlink", target, link)
}

// CloseFile closes a file opened by OpenForWriting.
func (c *Cluster) CloseFile(t testing.TB, remote string) {
	t.Helper()
	c.command(t, "close", remote)
}

// Chmod sets the permission bits of a path.
func (c *Cluster) Chmod(t testing.TB, remote string, mode os.FileMode) {
	t.Helper()
	c.command(t, "chmod", remote, fmt.Sprintf("%o", mode.Perm()))
}

// Chown sets the owner of a path.
func (c *Cluster) Chown(t testing.TB, remote, user string) {
	t.Helper()
	c.command(t, "chown", remote, user)
}

// Mkdir makes a directory and its parents.
func (c *Cluster) Mkdir(t testing.TB, remote string, mode os.FileMode) {
	t.Helper()
	c.command(t, "mkdir", remote, fmt.Sprintf("%o", mode.Perm()))
}

// KillDataNode kills a DataNode process.
func (c *Cluster) KillDataNode(t testing.TB, i int) {
	t.Helper()
	c.dataNode(t, i).kill()
}

// StartDataNode starts a killed DataNode again, with its blocks, and waits until it listens. The
// NameNode may not have noticed that it was gone.
func (c *Cluster) StartDataNode(t testing.TB, i int) {
	t.Helper()
	err := awaitPort(c.listensAt(i))
	if err == nil {
		err = c.startDataNode(i)
	}
	if err == nil {
		err = awaitServer(c.dataNodes[i], c.listensAt(i))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// StopDataNode hangs a DataNode process: its sockets stay open and it answers nothing.
func (c *Cluster) StopDataNode(t testing.TB, i int) {
	t.Helper()
	if err := c.dataNode(t, i).hang(); err != nil {
		t.Fatal(err)
	}
}

// ContDataNode lets a hung DataNode go on.
func (c *Cluster) ContDataNode(t testing.TB, i int) {
	t.Helper()
	if err := c.dataNode(t, i).signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) dataNode(t testing.TB, i int) *process {
	t.Helper()
	if !c.cfg.Separate {
		t.Fatal(errors.New("hdfstest: the DataNodes of this cluster are not separate processes (Config.Separate)"))
	}
	return c.dataNodes[i]
}
