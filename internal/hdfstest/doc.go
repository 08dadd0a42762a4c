// Package hdfstest starts real HDFS clusters for integration tests: Hadoop's own NameNode and
// DataNodes (the mini cluster of testdata/hdfs) and, on request, high availability, a real Kerberos
// KDC and a real key management server. Tests can restart, fail over, kill, hang and corrupt them,
// even at a given byte of a stream.
//
// Start gives a test its own cluster. Shared gives it one that all tests of the package use. A
// package that calls Shared runs its tests through Main, which ends the shared clusters:
//
//	func TestMain(m *testing.M) { hdfstest.Main(m) }
//
// testdata/hdfs/install.sh lists what a cluster needs (Java, Maven, the KDC). If something is
// missing, the test is skipped with a line that starts with "SKIP:". With
// AIBOX_REQUIRE_INTEGRATION=1 in the environment it fails instead, so that a continuous integration
// run cannot pass without these tests.
//
// Every process is killed when the test process ends, however it ends. A cluster takes 4 to 6 s to
// start and about 300 MB of memory. DataNodes in processes of their own, and a key management
// server, take about 200 MB each.
package hdfstest
