// Package remote keeps generations of models in a directory on HDFS or on a mounted file
// system, to which several machines and jobs may publish theirs, and from which any machine
// restores them. It knows a generation as a list of files with names, sizes and checksums.
//
//	URI/
//	  generations/000041-5d0c….json   a generation: its manifest, which names its objects
//	  snapshots/000007-77e1….json     a snapshot of a run that goes on
//	  priority/000003-01ab….json      rows of that run which were saved after it
//	  pending/9f3a….json              one that is being published
//	  objects/5d0c…-000007            a file, or a part of 256 MiB of one; never written with other bytes
//
// A manifest holds everything: the model's own manifest, and of each file its name, size,
// and objects with their SHA-256; it has a checksum of its own. Objects are shared: a
// publication uploads only what no generation has. A file whose name was never given to
// other bytes (buckets and deltas of a table on SSD) is known by its name and not even read;
// of one that has grown, only the bytes that were added are uploaded, as a part of their
// own. Others are known by their checksums. The id in the names of a publication's
// manifest and objects is random, so that no name ever comes again with other bytes.
//
// A snapshot is published as a generation is, and shares objects with both. Those of a
// run are removed when its model is there. A priority save has rows of a run as they were at
// some steps after its newest snapshot, and is removed when a later snapshot is there.
//
// # Publishing
//
// The store need be able to do four things: list a directory, write a file that appears
// when it is whole, rename a file at one instant, and remove one. No process waits for
// another, none needs to know which others are alive, and no clock is trusted:
//
//	scan         read all manifests, and list the objects
//	plan         compute checksums; decide what is new
//	pending/ID   write the manifest that the generation is to have
//	look again   have the manifests that share objects with it been removed? then begin again
//	upload       objects/ID-1, ID-2, …
//	commit       rename pending/ID to generations/NNNNNN-ID
//	clean        remove old manifests, then the objects that no manifest names
//
// Nobody deletes an object that a manifest names, pending or committed. A process that cleans lists
// the objects first, then the pending manifests and then the committed ones. So an object that it
// has listed is named by a manifest that it sees, if one is to use it: either the manifest was
// written before its listing; or it was written after, and shares an object whose earlier manifest
// has been removed, which its process notices when it looks again. That earlier manifest may also
// be removed by a third process after that, and before the committed ones are listed: so all
// manifests are read once more, and then the new one is seen. Of a pending manifest, others take
// only the objects that its own process uploads: whether the rest stays, that process may not have
// looked yet.
//
// A process that was killed leaves a pending manifest, with the objects that it had
// uploaded. The next publication of the same model goes on with it, that of a later night
// shares its objects, and it is removed by the next publication from the same model
// directory; or by any other after a week. What a snapshot has left that could not be uploaded is
// removed when the next one cannot be, either. If its process lives after all, its rename
// fails, and it begins again.
//
// While a manifest cannot be read, no object is deleted, since it may name any of them.
//
// These rules need a store that shows each change to everybody at once, as HDFS and local
// file systems do. On NFS, whose clients remember the names in a directory for some
// seconds, one machine at a time should publish to a directory.
//
// # Fetching
//
// Every byte is verified. An object that does not match is fetched again, three times in
// all. A file appears under its name when it is whole; of one that was begun, parts that are
// there are verified and kept. A reader takes no lock: if the generation that it fetches is
// deleted, it finds objects missing, and the caller takes a newer one.
//
// # Verifying and mending
//
// Verify reads every object once, also where many manifests share it. It takes no lock either: at
// the end it reads the manifests again, and what only those needed that are gone by then is no
// fault.
//
// A publication that verifies (Publication.Verify) uploads again what is missing or damaged of its
// own generation. It does so in place: the manifests say which bytes an object has, so nothing else
// can come there, whoever else does the same, or reads, or was wrong when he took it for damaged;
// and all generations that share the object are whole again. If nobody needs it any more by then,
// it is deleted with the next objects that nothing names.
//
// # Files that are used while they arrive
//
// The bucket files of a table on SSD can be used before they have been fetched (Arriving).
// Announce makes them with their sizes, of zeros, after it has written a record: which
// manifest they are of, and which of them lack bytes. Each part is divided into chunks of 1
// MiB. A chunk is fetched when somebody waits for one of its bytes, and all others in the
// background, as long as nobody waits:
//
//	absent ──somebody waits, or the background comes to it──> coming ──written──> here
//	   ^                                                        │
//	   +────────────────────── an error ────────────────────────+
//
// When all chunks of a part are there, its SHA-256 is computed from what was written, and the
// part is fetched again if it does not match. When all parts of a file match and are durable,
// the record forgets the file; with the last one the record is deleted. So after a crash at
// any instant a file is either not in the record, and whole, or in the record; then the
// next process verifies its parts and fetches those that do not match.
//
// A chunk is used before the part that it belongs to was verified. No wrong byte can get into a
// model all the same: what is read of a bucket file is buckets, each of which has a checksum that
// begins with a number of the table, the file, its incarnation and the bucket's place. Zeros are no
// bucket. Where a bucket is damaged, its chunks are fetched again (Again), twice at most, since
// what damaged it may have been the way and not the place; HDFS's client goes to another replica by
// itself where one does not match its checksums. If it stays damaged, it is reported as a damaged
// bucket, as one on the disk is. The record then says that the files are not to be trusted
// (Distrust), and the next process gives them up and fetches the snapshot anew, as a whole, or an
// older one.
//
// Who only reads such files (Reading) writes neither them nor the record. It reads what is on the
// disk; where that is no bucket, because it has not arrived or is being written, the chunks that
// have it are fetched into a cache of 32 MiB and put into the reader's buffer. The record is looked at
// each time: a file that it does not name any more is whole, and is read from the disk.
//
// Several directories may have the same files, as links; each has a record of its own, all of which
// are kept by the one process that fetches. A file arrives as long as any of them has it.
package remote
