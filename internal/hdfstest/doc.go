// Package hdfstest starts real HDFS clusters for integration tests: Hadoop's
// own NameNode and DataNodes (the mini cluster of testdata/hdfs), on request with
// high availability, a real Kerberos KDC and a real key management server. Tests can restart, fail over, kill, hang
// and corrupt them, also at a given byte of a stream.
//
// Start gives a test a cluster of its own, and Shared one that all tests of the package
// use. A package that calls Shared runs its tests through Main, which ends the shared
// clusters:
//
//	func TestMain(m *testing.M) { hdfstest.Main(m) }
//
// What a cluster needs (Java, Maven, the KDC) is listed by
// testdata/hdfs/install.sh. Where it is missing, the test is skipped with a
// line that starts with "SKIP:"; with AIBOX_REQUIRE_INTEGRATION=1 in the
// environment it fails instead, so that a continuous integration run cannot
// pass without these tests.
//
// Every process is killed when the test process ends, however it ends. A
// cluster costs 4 to 6 s of start-up and about 300 MB; DataNodes that are
// processes of their own, and a key management server, about 200 MB each.
package hdfstest
