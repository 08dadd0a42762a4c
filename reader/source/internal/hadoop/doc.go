// Package hadoop reads and writes files in HDFS.
//
// # Faults
//
// After a transient fault (a NameNode that restarts, fails over or is in safe mode, a DataNode that
// died or hangs, an expired block token), the read is retried at the current offset, with back-off,
// for up to Options.RetryMs. This also applies to the first contact with the cluster. Permanent
// faults (no such file, no permission, a wrong keytab, something that HDFS cannot do) are reported
// at once; retry.go lists the NameNode exceptions that are permanent.
//
// If there are several NameNodes, the one that served last is asked first, and the next one if it
// fails or does not answer within the time limit; this does not count as a retry. A NameNode that
// did not answer is asked last for a while, so that it costs its time limit once and not with every
// connection. An operation skips it only if it has been silent since the operation began to fail.
//
// # Reading blocks
//
//	reader --where is it?--> fileBlocks --> NameNode
//	    \---from whom?-----> nodes           (who failed lately)
//	     \--bytes----------> blockStream --> DataNode
//
// A DataNode must send a packet (usually 64 KiB) within TimeoutMs. If it does not, or closes the
// connection twice at the same byte, or sends bytes that do not match their checksums, reading
// continues with the next replica at the current offset. If a DataNode sends less than 1 MiB/s
// during two seconds of waiting (or half of TimeoutMs, if that is less), reading moves to another
// one as soon as that one has sent bytes. For five minutes, all readers then ask the slow or failed
// DataNodes last, so that a DataNode that never answers costs its time limit once and not with
// every block. A DataNode that was given up before its time limit is asked again, with the whole
// time limit, if the other replicas turn out to be worse. When all replicas have failed, this
// counts as one failed attempt, and the NameNode is asked again where the block is; attempts
// without progress end after RetryMs. If a DataNode rejects a block's token, the NameNode is asked
// for a new one; if the DataNode rejects that as well, it counts as failed. So every loop ends:
// each turn uses up a replica, receives bytes, or uses up time.
//
// This package has its own block reader (read.go, replicas.go, stream.go, packet.go, blocks.go,
// internal/sasl), which calls NameNodes through the client library (github.com/colinmarc/hdfs). The
// library's block reader is not enough: it reopens a replica that ends early again and again,
// without a limit; it accepts a replica without checksums; it hands out bytes with a wrong
// checksum, unless the caller asks for less than a checksum chunk at a time; and a caller cannot
// say which replica to avoid or how long to wait. 400 lines of workarounds around its 1,500 could
// not cure the first two of these faults. Our reader has 1,100 lines, and 380 for the handshake
// with secured DataNodes. It handles each fault in one place, tests drive each case without a
// cluster (stream_test.go), and it supports integrity protection and RC4, with which the library
// cannot read. The library still provides NameNode calls and the message types (internal/wire).
// rpc.go uses one of its private fields to make calls that it does not offer, and answers.go finds
// errors in a NameNode's answers that it overlooks.
//
// # Erasure-coded files
//
// A block of such a file is a group of internal blocks, each of which is on one DataNode
// (coding.go). Internal blocks are read by the same code as replicated ones, one cell after the
// other (striped.go). A reader has one connection, with a buffer of 160 KiB, for each data block.
// If a block cannot be read, or its DataNode is silent or too slow for two seconds, its bytes are
// computed packet by packet from as many other blocks as there are data blocks. These are read
// through separate connections: if one of six data blocks is lost, eleven connections receive 1.8
// times the bytes of the file. A reader that waits for the next positioned read keeps only the
// connections that its next byte needs. A failed block is left out until the next group, or until
// too few blocks are left. Then all are tried once more, with the whole time limit; if that is not
// enough, this counts as one failed attempt. The error names all blocks that could not be read.
//
// # Configuration
//
// core-site.xml and hdfs-site.xml are read as Hadoop reads them (sitexml.go). These keys are used:
// fs.defaultFS, dfs.nameservices, dfs.ha.namenodes.*, dfs.namenode.rpc-address.*,
// dfs.client.use.datanode.hostname, hadoop.security.authentication,
// dfs.namenode.kerberos.principal, dfs.data.transfer.protection, dfs.encrypt.data.transfer,
// hadoop.security.key.provider.path (or dfs.encryption.key.provider.uri) and
// dfs.client.ignore.namenode.default.kms.uri. Other settings for clients (proxy providers, time
// limits, hedged and short-circuit reads) are ignored, since this package has its own mechanisms.
//
// Kerberos is implemented by gokrb5 (internal/login). Its krb5.conf is merged and completed so that
// it means what it means to MIT's library: included files are read, realms and defaults joined, and
// KDCs looked up in DNS. A key table may have keys of several types and versions. _HOST in the
// NameNodes' principal stands for the host name of their address, in lower case. As in Hadoop, if
// the KDC does not know that name, the name that DNS gives for the IP address is used. If krb5.conf
// has no realm for a host, the realm of the principal in hdfs-site.xml is used.
//
// # Encryption zones
//
// Clients encrypt the files in an encryption zone when they write them. The key of a file is stored
// with it, encrypted with the key of the zone. A KMS (key management server) decrypts it for users
// who may use the zone's key (internal/kms). The KMS is asked when a file is opened or created, and
// once for each version of a zone's key when files are listed, so that a job learns of a missing
// key at its start. As in Hadoop, it is the KMS that the NameNode names, unless the configuration
// says otherwise. If it has several hosts, the one that answered last is asked first, and the next
// one if it fails; when all have failed, this is one failed attempt (see Faults). The client
// identifies itself with its user name or a Kerberos ticket. An https server must have a
// certificate that this machine trusts ($SSL_CERT_FILE names others); the trust store of Hadoop's
// ssl-client.xml is not read.
//
// DataNodes store only encrypted bytes, and checksums of those. So bytes are decrypted when they
// are handed out, and encrypted when an upload reads them (zones.go).
//
// # Limits
//
//   - Symbolic links are refused, and so are files in encryption zones whose cipher is not
//     AES/CTR/NoPadding or whose keys are not in a KMS, and files that are erasure coded with a
//     codec other than Hadoop's rs, rs-legacy and xor. In a directory, such a file matters only to
//     paths and patterns that select it.
//   - A file written with dfs.checksum.type=NULL has no checksums. It is read only with
//     Options.AllowMissingChecksums.
//   - Observer NameNodes are skipped like standby ones, since their answers may be stale. The
//     cluster must set dfs.namenode.state.context.enabled if it has any; they then refuse clients
//     that do not say what state they have seen.
//   - Routers of router-based federation are used like NameNodes. They hand out no keys for
//     dfs.encrypt.data.transfer, so clusters that use it are reached through their NameNodes.
//   - viewfs:// and webhdfs:// are not supported; the HDFS behind a mount point has an hdfs:// URI.
//   - Ticket caches of the kinds FILE: and DIR: are read; KCM: and KEYRING: are refused with a
//     hint.
//   - hadoop.rpc.protection works at all levels. Requests to NameNodes are signed or encrypted here
//     (requests.go), since the client library sends them in the clear.
//   - A file that is replaced between listing and reading goes unnoticed if the new one has the
//     same length and, to a millisecond, the same modification time.
//   - DataNodes are read over TCP even if they are on the same machine: there are no short-circuit
//     reads.
//   - Data transfer protection works at all levels: authentication, integrity, privacy by AES or
//     RC4, and dfs.encrypt.data.transfer. Integrity and RC4 are slower than AES
//     (dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding).
//
// # Writing
//
// A file is collected on the local disk ($TMPDIR). Close uploads it under a hidden name, .NAME.<12
// hexadecimal digits>.aibox.tmp, and then renames it. An upload that fails or is interrupted
// removes the hidden file. If a run is killed, the next upload to the same directory removes it,
// once the NameNode has not heard from its writer for a minute.
//
// A DataNode that receives bytes slowly is waited for as long as they move, since several uploads
// may share a slow line or a rate limit. One that is dead or hangs costs about its time limit: the
// block is abandoned and written again from the local copy without that DataNode, and later files
// avoid it for a while. The client library cannot do that, because its writer does not tell the
// NameNode which DataNodes to exclude. So this package has its own writer of about 500 lines
// (upload.go, pipeline.go), which uses the handshake and the messages that reading needs anyway. It
// stays simple because it writes a failed block again as a whole, which makes Hadoop's pipeline
// recovery unnecessary.
//
// In erasure-coded directories, files are written replicated: the create request sets
// SHOULD_REPLICATE.
//
// # Concurrency
//
// A Cluster is safe for concurrent use.
package hadoop
