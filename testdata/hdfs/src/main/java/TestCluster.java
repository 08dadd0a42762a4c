import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.KeyProvider;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.ha.HAServiceProtocol;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicy;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicyInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.tools.NNHAServiceTarget;
import org.apache.hadoop.io.erasurecode.ECSchema;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.ToolRunner;

/**
 * A real HDFS for tests: NameNodes, and DataNodes if wanted, in this process,
 * driven by commands on standard input, one per line, words separated by tabs.
 * Each command is answered by one line, "ok" with results or "error". The
 * process ends at the end of its input, so that it never outlives the test.
 *
 * <p>The only argument is a properties file: Hadoop's configuration keys, and
 *
 * <pre>
 *   test.nameservice     name service of an HA pair; absent: one NameNode
 *   test.external        the NameNodes nn1, nn2 of the name service are other processes
 *   test.namenode.ports  RPC ports, comma separated
 *   test.datanodes       DataNodes in this process
 *   test.dn.I.KEY        KEY of the configuration of DataNode I only
 * </pre>
 */
public final class TestCluster {
  /** How long a restarted NameNode may take; on a busy machine it takes some seconds. */
  private static final long READY_SECONDS = 90;

  private final Properties props;
  private final Configuration conf;
  private final MiniDFSCluster cluster; // null with test.external
  private final boolean ha;
  private final Map<String, FSDataOutputStream> open = new HashMap<>();
  private DistributedFileSystem fs;

  /** Keeps dfs.replication. MiniDFSCluster lowers it to its initial number of DataNodes, 0. */
  private static final class FixedReplication extends HdfsConfiguration {
    boolean fixed;

    @Override
    public void set(String name, String value, String source) {
      if (!fixed || !name.equals("dfs.replication")) {
        super.set(name, value, source);
      }
    }
  }

  private TestCluster(Properties props) throws Exception {
    this.props = props;
    conf = new FixedReplication();
    for (String key : props.stringPropertyNames()) {
      if (!key.startsWith("test.")) {
        conf.set(key, props.getProperty(key));
      }
    }
    ((FixedReplication) conf).fixed = true;
    UserGroupInformation.setConfiguration(conf);
    String[] ports = props.getProperty("test.namenode.ports").split(",");
    String nameservice = props.getProperty("test.nameservice");
    ha = nameservice != null;
    if (props.getProperty("test.external") != null) {
      cluster = null;
      HAServiceProtocol nn1 = nameNode(0);
      for (boolean active = false; !active; ) {
        try {
          nn1.transitionToActive(byForce());
          active = true;
        } catch (IOException e) { // it is starting; the caller bounds the wait
          Thread.sleep(100);
        }
      }
      connect(0);
      return;
    }
    MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf).numDataNodes(0);
    if (ha) {
      MiniDFSNNTopology.NSConf ns = new MiniDFSNNTopology.NSConf(nameservice);
      for (int i = 0; i < ports.length; i++) {
        ns.addNN(new MiniDFSNNTopology.NNConf("nn" + (i + 1)).setIpcPort(Integer.parseInt(ports[i])));
      }
      builder.nnTopology(new MiniDFSNNTopology().addNameservice(ns));
    } else {
      builder.nameNodePort(Integer.parseInt(ports[0]));
    }
    cluster = builder.build();
    if (ha) {
      cluster.transitionToActive(0);
    }
    for (int i = 0; i < Integer.parseInt(props.getProperty("test.datanodes", "0")); i++) {
      Configuration dnConf = new HdfsConfiguration(conf);
      String prefix = "test.dn." + i + ".";
      for (String key : props.stringPropertyNames()) {
        if (key.startsWith(prefix)) {
          dnConf.set(key.substring(prefix.length()), props.getProperty(key));
        }
      }
      cluster.startDataNodes(dnConf, 1, true, null, null, null, null);
    }
    cluster.waitActive();
    connect(0);
  }

  /** Writes that many zero bytes, flushes them to the DataNodes and keeps the file open. */
  private String hold(String name, FSDataOutputStream out, int bytes) throws IOException {
    if (bytes > 0) {
      out.write(new byte[bytes]);
      out.hflush();
    }
    open.put(name, out);
    return "";
  }

  private HAServiceProtocol nameNode(int i) throws IOException {
    String id = "nn" + (i + 1);
    return new NNHAServiceTarget(conf, props.getProperty("test.nameservice"), id).getProxy(conf, 300000);
  }

  private static HAServiceProtocol.StateChangeRequestInfo byForce() {
    return new HAServiceProtocol.StateChangeRequestInfo(
        HAServiceProtocol.RequestSource.REQUEST_BY_USER_FORCED);
  }

  private void toActive(int namenode) throws IOException {
    if (cluster == null) {
      nameNode(namenode).transitionToActive(byForce());
    } else {
      cluster.transitionToActive(namenode);
    }
    connect(namenode);
  }

  private void toStandby(int namenode) throws IOException {
    if (cluster == null) {
      nameNode(namenode).transitionToStandby(byForce());
    } else {
      cluster.transitionToStandby(namenode);
    }
  }

  private void connect(int namenode) throws IOException {
    if (cluster == null) {
      String address = conf.get("dfs.namenode.rpc-address." + props.getProperty("test.nameservice") + ".nn" + (namenode + 1));
      fs = (DistributedFileSystem) FileSystem.newInstance(URI.create("hdfs://" + address), conf);
      return;
    }
    fs = cluster.getFileSystem(namenode);
  }

  private String run(String[] a) throws Exception {
    switch (a[0]) {
      case "put": // local remote replication blockBytes checksumBytes favoredDataNode|-1
        return put(a);
      case "concat": // target source
        fs.concat(new Path(a[1]), new Path[] {new Path(a[2])});
        return "";
      case "open": // remote bytes: write that many, flush them to the DataNodes, keep the file open
        return hold(a[1], fs.create(new Path(a[1])), Integer.parseInt(a[2]));
      case "close": // remote
        open.remove(a[1]).close();
        return "";
      case "chmod": // remote octal
        fs.setPermission(new Path(a[1]), new FsPermission((short) Integer.parseInt(a[2], 8)));
        return "";
      case "chown": // remote user
        fs.setOwner(new Path(a[1]), a[2], null);
        return "";
      case "mkdir": // remote octal
        fs.mkdirs(new Path(a[1]));
        fs.setPermission(new Path(a[1]), new FsPermission((short) Integer.parseInt(a[2], 8)));
        return "";
      case "blocks": // remote -> name:offset:length:replicas ...
        StringBuilder sb = new StringBuilder();
        for (LocatedBlock b : fs.getClient().getLocatedBlocks(a[1], 0, Long.MAX_VALUE).getLocatedBlocks()) {
          sb.append(b.getBlock().getBlockName()).append(':').append(b.getStartOffset());
          sb.append(':').append(b.getBlockSize()).append(':').append(b.getLocations().length).append(' ');
        }
        return sb.toString();
      case "token-life": // milliseconds; for block tokens that are made from now on
        for (int i = 0; i < cluster.getNumNameNodes(); i++) {
          cluster.getNamesystem(i).getBlockManager().getBlockTokenSecretManager().setTokenLifetime(Long.parseLong(a[1]));
        }
        return "";
      case "wait-datanodes": // n
        while (ready() < Integer.parseInt(a[1])) {
          Thread.sleep(50);
        }
        return "";
      case "stop-namenode": // i
        cluster.shutdownNameNode(Integer.parseInt(a[1]));
        return "";
      case "start-namenode": // i
        startNameNode(Integer.parseInt(a[1]));
        return "";
      case "failover": // from to
        toStandby(Integer.parseInt(a[1]));
        toActive(Integer.parseInt(a[2]));
        return "";
      case "activate": // namenode
        toActive(Integer.parseInt(a[1]));
        return "";
      case "standby": // namenode
        toStandby(Integer.parseInt(a[1]));
        return "";
      case "ls": // directory -> names, including hidden ones
        StringBuilder names = new StringBuilder();
        for (FileStatus f : fs.listStatus(new Path(a[1]))) {
          names.append(f.getPath().getName()).append(' ');
        }
        return names.toString();
      case "ec": // directory policy
        if (!a[2].equals("REPLICATION")) { // that one is always enabled
          enable(a[2]);
        }
        fs.mkdirs(new Path(a[1]));
        fs.setErasureCodingPolicy(new Path(a[1]), a[2]);
        return "";
      case "shell": // arguments of `hdfs dfs`
        int rc = ToolRunner.run(fs.getConf(), new FsShell(), Arrays.copyOfRange(a, 1, a.length));
        if (rc != 0) {
          throw new IOException(String.join(" ", a) + ": exit status " + rc);
        }
        return "";
      case "allow-snapshots": // directory
        fs.allowSnapshot(new Path(a[1]));
        return "";
      case "symlink": // target link
        FileSystem.enableSymlinks();
        fs.createSymlink(new Path(a[1]), new Path(a[2]), true);
        return "";
      case "append": // remote bytes: like "open", but for a file that exists
        return hold(a[1], fs.append(new Path(a[1])), Integer.parseInt(a[2]));
      case "observer": // namenode
        cluster.transitionToObserver(Integer.parseInt(a[1]));
        return "";
      case "encrypt": // directory key
        KeyProvider keys = cluster.getNamesystem().getProvider();
        if (keys.getMetadata(a[2]) == null) {
          keys.createKey(a[2], KeyProvider.options(conf));
          keys.flush();
        }
        fs.mkdirs(new Path(a[1]));
        fs.createEncryptionZone(new Path(a[1]), a[2]);
        return "";
      case "delete-key": // key
        cluster.getNamesystem().getProvider().deleteKey(a[1]);
        cluster.getNamesystem().getProvider().flush();
        return "";
      case "quota": // directory names bytes; -1: no limit
        fs.mkdirs(new Path(a[1]));
        long entries = Long.parseLong(a[2]);
        long bytes = Long.parseLong(a[3]);
        fs.setQuota(new Path(a[1]), entries < 0 ? HdfsConstants.QUOTA_RESET : entries, bytes < 0 ? HdfsConstants.QUOTA_RESET : bytes);
        return "";
      case "safemode": // enter|leave
        fs.setSafeMode(a[1].equals("enter")
            ? org.apache.hadoop.fs.SafeModeAction.ENTER : org.apache.hadoop.fs.SafeModeAction.LEAVE);
        return "";
      default:
        throw new IllegalArgumentException("unknown command " + a[0]);
    }
  }

  /**
   * Starts NameNode i again and waits until it has left safe mode and knows the DataNodes. If
   * that takes too long, a DataNode's report was lost, so all are restarted to report again.
   */
  private void startNameNode(int i) throws Exception {
    cluster.restartNameNode(i, false);
    if (!ha) {
      connect(0);
    }
    boolean ready = becomesReady(i);
    for (int dn = ready ? 0 : cluster.getDataNodes().size(); dn > 0; dn--) {
      cluster.restartDataNode(0, true); // it becomes the last, so that the next one is 0
    }
    if (!ready && !becomesReady(i)) {
      FSNamesystem names = cluster.getNamesystem(i);
      throw new IOException("NameNode " + i + " did not become ready within " + READY_SECONDS + " s, twice: "
          + names.getNumLiveDataNodes() + " of " + cluster.getDataNodes().size() + " DataNodes live, safe mode "
          + names.isInSafeMode());
    }
    try {
      fs.exists(new Path("/"));
    } catch (IOException e) {
      // This used the connection to the NameNode before its restart. The next call makes a new one.
    }
  }

  private boolean becomesReady(int i) throws InterruptedException {
    long until = System.nanoTime() + READY_SECONDS * 1_000_000_000L;
    while (System.nanoTime() < until) {
      FSNamesystem names = cluster.getNamesystem(i);
      if (names != null && !names.isInSafeMode() && names.getNumLiveDataNodes() >= cluster.getDataNodes().size()) {
        return true;
      }
      Thread.sleep(50);
    }
    return false;
  }

  /** Returns how many DataNodes have reported their storage. Others get no blocks. */
  private int ready() throws IOException {
    int n = 0;
    for (DatanodeInfo dn : fs.getDataNodeStats(HdfsConstants.DatanodeReportType.LIVE)) {
      n += dn.getCapacity() > 0 ? 1 : 0;
    }
    return n;
  }

  /** Enables a policy. If Hadoop has none of that name, such as RS-3-2-64k, adds it first. */
  private void enable(String policy) throws IOException {
    boolean known = false;
    for (ErasureCodingPolicyInfo info : fs.getAllErasureCodingPolicies()) {
      known |= info.getPolicy().getName().equals(policy);
    }
    if (!known) {
      String[] parts = policy.split("-");
      ECSchema schema = new ECSchema(parts[0].toLowerCase(), Integer.parseInt(parts[1]), Integer.parseInt(parts[2]));
      int cell = Integer.parseInt(parts[3].replace("k", "")) << 10;
      fs.addErasureCodingPolicies(new ErasureCodingPolicy[] {new ErasureCodingPolicy(schema, cell)});
    }
    fs.enableErasureCodingPolicy(policy);
  }

  private String put(String[] a) throws Exception {
    int checksumBytes = Integer.parseInt(a[5]);
    Options.ChecksumOpt checksum =
        new Options.ChecksumOpt(org.apache.hadoop.util.DataChecksum.Type.CRC32C, checksumBytes);
    int favored = Integer.parseInt(a[6]);
    short replication = Short.parseShort(a[3]);
    long blockBytes = Long.parseLong(a[4]);
    Path path = new Path(a[2]);
    fs.mkdirs(path.getParent());
    FSDataOutputStream out;
    if (favored >= 0) {
      DataNode dn = cluster.getDataNodes().get(favored);
      out = fs.create(path, FsPermission.getFileDefault(), true, 65536, replication, blockBytes, null,
          new InetSocketAddress[] {dn.getXferAddress()});
    } else {
      out = fs.create(path, FsPermission.getFileDefault(), EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE),
          65536, replication, blockBytes, null, checksum);
    }
    try (InputStream in = new FileInputStream(a[1]); FSDataOutputStream o = out) {
      in.transferTo(o);
    }
    return "";
  }

  public static void main(String[] args) throws Exception {
    Properties props = new Properties();
    try (InputStream in = new FileInputStream(args[0])) {
      props.load(in);
    }
    PrintStream answers = System.out;
    System.setOut(System.err); // other code may print, but not between the answers
    TestCluster t = null;
    try {
      t = new TestCluster(props);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1); // even if threads of servers still run
    }
    answers.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      try {
        answers.println("ok " + t.run(line.split("\t")));
      } catch (Throwable e) {
        e.printStackTrace();
        answers.println("error " + e.toString().lines().findFirst().orElse(""));
      }
    }
    Runtime.getRuntime().halt(0); // at once, since nothing of the cluster is kept
  }
}
