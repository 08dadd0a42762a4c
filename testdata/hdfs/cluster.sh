#!/bin/sh
# Starts a small HDFS for trying things out by hand; Ctrl-D ends it.
#
#   testdata/hdfs/cluster.sh [PORT]
#
# The NameNode listens at hdfs://localhost:PORT (default 8020), with two
# DataNodes in the same process. Commands are lines of words separated by tabs,
# see TestCluster.java: for example "stop-namenode<TAB>0".
set -eu

port=${1:-8020}
cd "$(dirname "$0")"
mvn -q -B compile
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/cluster.properties" <<CONF
hdfs.minidfs.basedir=$dir/dfs
dfs.replication=2
dfs.permissions.superusergroup=$(id -gn)
test.namenode.ports=$port
test.datanodes=2
CONF
echo "starting hdfs://localhost:$port (Ctrl-D ends it)"
java -Xmx256m -XX:+UseSerialGC -cp 'target/classes:target/lib/*' TestCluster "$dir/cluster.properties"
