// Package hadoop reads and writes the files of an HDFS.
//
// # Faults
//
// After a transient fault (a NameNode that restarts or fails over or is in safe mode, a
// DataNode that died or hangs, an expired block token), the read is retried at the
// current offset, with back-off, for Options.RetryMs, from the first contact on.
// Permanent faults (no such file, no permission, wrong keytab, what HDFS cannot do) are
// reported at once; retry.go has the exceptions of NameNodes that are such faults.
//
// If there are several NameNodes, the one that served last is asked first, and the
// next one if it fails or does not answer within the time limit; this does not count
// as a retry. A NameNode that did not answer is asked last for a while, so that it costs
// its time limit once and not with every connection. An operation leaves it out only if
// it was silent since the operation began to fail.
//
// # Reading blocks
//
//	reader --where is it?--> fileBlocks --> NameNode
//	    \---from whom?-----> nodes           (who failed lately)
//	     \--bytes----------> blockStream --> DataNode
//
// A DataNode must send a packet (64 KiB, usually) within TimeoutMs. If it does not, or closes the
// connection twice at the same byte, or sends bytes that do not match their checksums, reading goes
// on with the next replica at the current offset. If a DataNode sends less than 1 MiB/s during two
// seconds of waiting (or half of TimeoutMs, if that is less), reading moves to another one as soon
// as that one has sent bytes. For five minutes, all readers then ask these DataNodes last, so that
// a DataNode that never answers costs its time limit once and not with every block. If the other
// replicas turn out to be worse, a DataNode that was left so early is asked again and gets the
// whole time limit. When all replicas have failed, this counts as one failed attempt, and the
// NameNode is asked again where the block is; attempts without progress end after RetryMs. If a
// DataNode does not accept a block's token, the NameNode is asked for a new one; if it does not
// accept that either, it counts as one that failed. So every loop ends: each turn uses up a
// replica, receives bytes, or uses up time.
//
// The blocks are read by a reader of our own (read.go, replicas.go,
// stream.go, packet.go, blocks.go, internal/sasl), which calls NameNodes
// through the client library (github.com/colinmarc/hdfs). The library's own block
// reader was not enough: it opens a replica that ends early again and again, without a
// limit; it accepts a replica without checksums; it hands out bytes whose checksum is
// wrong, unless the caller asks for less than a checksum chunk at a time; and a caller
// cannot say which replica to avoid or how long to wait. 400 lines of workarounds around
// its 1,500 could not cure the first two of these faults. Our reader has 1,000 lines,
// and 370 for the handshake of secured DataNodes. It handles each fault in one place,
// tests drive each case without a cluster (stream_test.go), and it supports
// integrity protection and RC4, with which the library cannot read. The library still
// provides calls of NameNodes and the message types (internal/wire); rpc.go uses one of its
// private fields to make calls that it does not offer, and answers.go finds in a
// NameNode's answers what it overlooks.
//
// # Erasure-coded files
//
// A block of such a file is a group of internal blocks, each of which is on one DataNode (coding.go).
// Each is read as a block of its own is, by the same code, one cell after the other (striped.go);
// a reader has a connection, and its buffer of 160 KiB, for each data block. If a block cannot be
// read, or if its DataNode is silent or too slow for two seconds, its bytes are computed from as many
// others as there are data blocks, packet by packet, through connections of their own: with one of
// six blocks lost, eleven connections receive 1.8 times the bytes of the file. Of the readers that
// wait for the next positioned read, each keeps only the connections that its next byte needs. A
// block that has failed is left out until the next group, or until too few are left: then all are
// tried once more, with the whole time limit, and if that is not enough, this counts as one failed
// attempt. The error names all blocks that could not be read.
//
// # Configuration
//
// core-site.xml and hdfs-site.xml are read as Hadoop reads them (sitexml.go). Of their keys,
// these count: fs.defaultFS, dfs.nameservices, dfs.ha.namenodes.*,
// dfs.namenode.rpc-address.*, dfs.client.use.datanode.hostname,
// hadoop.security.authentication, dfs.namenode.kerberos.principal,
// dfs.data.transfer.protection, dfs.encrypt.data.transfer,
// hadoop.security.key.provider.path (or dfs.encryption.key.provider.uri) and
// dfs.client.ignore.namenode.default.kms.uri. What else they say of clients
// (proxy providers, time limits, hedged and short-circuit reads) does not: this package has
// its own answers.
//
// Kerberos is that of gokrb5 (internal/login), for which krb5.conf is combined and completed so
// that it means what it means to MIT's library: files included, realms and defaults joined,
// KDCs looked up in DNS. A key table may have keys of several types and versions. _HOST in
// the principal of NameNodes is the host name of their addresses, in lower case, or, if the
// KDC does not know that one, the name that DNS has for the IP address, as in Hadoop. If
// krb5.conf has no realm for a host, that of the principal in hdfs-site.xml counts.
//
// # Encryption zones
//
// A file in an encryption zone is encrypted by who writes it. Its key is stored with it, encrypted
// by the key of the zone, and a KMS (key management server) decrypts it for who may use that key
// (internal/kms). It is asked when a file is opened, when one is created, and once for each key of
// a zone when files are listed, so that a job finds out at its start. As in Hadoop, the KMS that the
// NameNode names is asked, unless the configuration says otherwise. Of several hosts the one
// that answered last is asked first, and the next one where one fails; when all have failed, this
// is one failed attempt (see Faults). Who asks says its user name, or shows a Kerberos ticket. An
// https server must have a certificate that this machine trusts ($SSL_CERT_FILE names others); the
// trust store of Hadoop's ssl-client.xml is not read.
//
// DataNodes have encrypted bytes alone, of which their checksums are. So bytes are decrypted where
// they are handed out, and encrypted where an upload reads them (zones.go).
//
// # Limits
//
//   - Symbolic links are refused, and so are files of encryption zones whose cipher is not
//     AES/CTR/NoPadding or whose keys are not in a KMS, and files that are erasure coded by
//     codecs other than Hadoop's rs, rs-legacy and xor. In a
//     directory they matter only to who means them.
//   - A file written with dfs.checksum.type=NULL has no checksums:
//     Options.AllowMissingChecksums reads it.
//   - Observers are passed over as standby NameNodes are, since their answers may be old. They
//     must not be configured without dfs.namenode.state.context.enabled, with which they
//     refuse clients that do not say what they have seen.
//   - Routers of router-based federation serve as NameNodes do. They give no keys for
//     dfs.encrypt.data.transfer, so that clusters that encrypt by it are reached by their NameNodes.
//   - viewfs:// and webhdfs:// are not known; the HDFS behind a mount point has an hdfs:// URI.
//   - Ticket caches are read of the kinds FILE: and DIR:; KCM: and KEYRING: are refused with a hint.
//   - hadoop.rpc.protection works at all levels; what a NameNode is asked is signed or
//     encrypted here (requests.go), since the client library sends it in the clear.
//   - Two files of the same length and modification time, to a millisecond, are taken for
//     one another if one replaces the other between listing and reading.
//   - DataNodes are read over TCP even if they are on the same machine: there are no
//     short-circuit reads.
//   - Data transfer protection works at all levels: authentication, integrity,
//     privacy by AES or RC4, and dfs.encrypt.data.transfer. Integrity and RC4 are
//     slower than AES (dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding).
//
// # Writing
//
// A file is collected on the local disk ($TMPDIR) and uploaded by Close to a hidden name, .NAME.<12
// hexadecimal digits>.aibox.tmp, which is then renamed. An upload that fails or is interrupted
// removes that file; the file of a run that was killed is removed by the next upload to the same
// directory, once the NameNode has not heard from its writer for a minute.
//
// A DataNode that gets its bytes slowly is waited for as long as they move, since several uploads may
// share a slow line, or a limit. One that is dead or hangs costs about its time limit: the block is
// abandoned and written again from the local copy without that DataNode, and further
// files avoid it for a while. The client library cannot do that: its writer does not
// tell the NameNode which DataNodes to exclude. So there is a writer of our own, of
// about 500 lines (upload.go, pipeline.go), which uses the handshake and the
// messages that reading needs anyway. It stays simple because a block that fails is
// written again as a whole, so that it does not need Hadoop's pipeline recovery.
//
// Where files are erasure coded, replicated ones are written: the request to create one says so
// (SHOULD_REPLICATE).
//
// # Concurrency
//
// A Cluster is safe for concurrent use.
package hadoop
