// Package remote keeps generations of models in a directory on HDFS or on a mounted file system.
// Several machines and jobs may publish theirs to the same directory, and any machine can restore
// them. For this package a generation is a list of files with names, sizes and checksums.
//
//	URI/
//	  generations/000041-5d0c….json   a generation: its manifest, which names its objects
//	  snapshots/000007-77e1….json     a snapshot of an unfinished run
//	  priority/000003-01ab….json      rows of that run that were saved after it
//	  pending/9f3a….json              a manifest that is being published
//	  objects/5d0c…-000007            a file, or a part of 256 MiB of one; its bytes never change
//
// A manifest contains the model's own manifest and, for each file, its name, its size, and its
// objects with their SHA-256. It has a checksum of its own. Objects are shared: a publication
// uploads only what no generation has. A file whose name is never given to other bytes (buckets and
// deltas of a table on SSD) is identified by its name and not even read. If such a file has grown,
// only the added bytes are uploaded, as a part of their own. Other files are identified by their
// checksums. The ID in the names of a publication's manifest and objects is random, so no name is
// ever used for other bytes.
//
// A snapshot is published like a generation, and shares objects with generations and other
// snapshots. The snapshots of a run are removed when its model is published. A priority save has
// rows of a run at some steps after its newest snapshot, and is removed when a later snapshot is
// published.
//
// # Publishing
//
// The store must be able to do four things: list a directory, write a file that appears when it is
// complete, rename a file atomically, and remove one. No process waits for another, none needs to
// know which others are alive, and no clock is trusted:
//
//	scan         read all manifests, and list the objects
//	plan         compute checksums; decide what is new
//	pending/ID   write the future manifest of the generation
//	look again   if manifests that share objects with it were removed, begin again
//	upload       objects/ID-1, ID-2, …
//	commit       rename pending/ID to generations/NNNNNN-ID
//	clean        remove old manifests, then the objects that no manifest names
//
// No process deletes an object that a manifest names, pending or committed. A process that cleans
// lists the objects first, then the pending manifests, then the committed ones. So if a listed
// object will be used, a manifest that it sees names the object. Either that manifest was written
// before the listing, or it was written later and shares an object whose earlier manifest has been
// removed; its process notices that when it looks again. A third process may also remove that
// earlier manifest after that, before the committed ones are listed. Therefore all manifests are
// read once more, and then the new one is seen. From a pending manifest, other processes take only
// the objects that its own process uploads, since that process may not have checked yet that the
// others stay.
//
// A process that was killed leaves a pending manifest, with the objects that it had uploaded. The
// next publication of the same model continues with it, and one of a later night shares its
// objects. The next publication from the same model directory removes it, or any other one after a
// week. If two snapshots in a row cannot be uploaded, the remains of the first are removed. If the
// process of a removed manifest lives after all, its rename fails, and it begins again.
//
// While a manifest cannot be read, no object is deleted, since it may name any of them.
//
// These rules need a store that shows each change to all processes at once, as HDFS and local file
// systems do. NFS clients cache the names in a directory for some seconds, so on NFS one machine at
// a time should publish to a directory.
//
// # Fetching
//
// Every byte is verified. An object that does not match is fetched again, up to three times in all.
// A file appears under its name when it is complete. If a file was begun, its existing parts are
// verified and kept. A reader takes no lock: if the generation that it fetches is deleted, it finds
// objects missing, and the caller takes a newer one. If the subdirectory objects itself is gone,
// which no process removes, the file system is probably no longer mounted: then nothing counts as
// damaged, so that no model is given up because it cannot be read for a while.
//
// # Verifying and repairing
//
// Verify reads every object once, even if many manifests share it. It takes no lock either. At the
// end it reads the manifests again: if objects are missing that only removed manifests needed, that
// is no fault.
//
// A publication that verifies (Publication.Verify) uploads missing or damaged objects of its own
// generation again, in place. The manifests say which bytes an object has, so no other bytes can
// get there, even if other processes do the same or read it, or if the object was not damaged after
// all. All generations that share the object are complete again. If no manifest names the object
// any more by then, the next clean-up deletes it.
//
// # Files that are used while they arrive
//
// The bucket files of a table on SSD can be used before they have been fetched (Arriving). Announce
// first writes a record of their manifest and of which files miss bytes. Then it makes these files
// at their full size, filled with zeros. Each part is divided into chunks of 1 MiB. A chunk is
// fetched when a reader waits for one of its bytes. All others are fetched in the background, while
// no reader waits:
//
//	absent ──a reader waits, or the background reaches it──> coming ──written──> here
//	   ^                                                        │
//	   +────────────────────── an error ────────────────────────+
//
// When all chunks of a part are there, its SHA-256 is computed from what was written, and the part
// is fetched again if it does not match. When all parts of a file match and are durable, the file
// is removed from the record, and with the last file the record is deleted. So after a crash at any
// instant, a file is either complete and not in the record, or in the record. Then the next process
// verifies its parts and fetches those that do not match.
//
// A chunk is used before its part is verified. Still, no wrong byte can get into a model: bucket
// files are read bucket by bucket, and each bucket has a checksum that covers a number of the
// table, the file, its incarnation and the bucket's place. Zeros are not a valid bucket. If a
// bucket is damaged, its chunks are fetched again (Again), at most twice, since the damage may have
// happened on the way and not at the source. (HDFS's client itself goes to another replica if one
// does not match its checksums.) If the bucket stays damaged, it is reported like a damaged bucket
// on disk. The record then says that the files are damaged (MarkDamaged). The next process
// gives them up and fetches the snapshot again as a whole, or an older one.
//
// A process that only reads such files (Reading) writes neither them nor the record. It reads what
// is on the disk. If that is not a bucket, because it has not arrived or is being written, the
// chunks that contain the bucket are fetched into a cache of 32 MiB and copied to the reader's
// buffer. The record is checked each time: a file that it no longer names is complete, and is read
// from the disk.
//
// Several directories may have the same files, as links. Each has a record of its own; the one
// process that fetches maintains all of them. A file keeps arriving as long as any of the
// directories has it.
package remote
