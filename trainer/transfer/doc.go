// Package transfer moves models between model directories (package modeldir) and remote directories
// (package remote).
//
//	Publish    model directory -> remote directory: the model, and before it those from which it
//	           was made and which could not be published in their nights
//	Restore    remote directory -> model directory: the newest model that is whole
//	Complete   brings what a model lacks that is usable and has not all arrived
//	Read       has who only reads such a model take what lacks from the remote directory
//
// Bring and OpenArriving are the parts of Restore and Complete that snapshots of a run need, too:
// they bring the files of a generation or snapshot to the places that a modeldir.Restoring has for
// them, and fetch what is left to fetch of those that are used while they arrive.
//
// # A remote directory that is not mounted
//
// A remote directory may be on a file system that is mounted from elsewhere. Where that is not
// mounted, its place is empty or missing, which must not count as a directory without models. So
// what decides by the contents of the directory opens it by OpenPresent, which fails if the
// directory does not exist. And a model is not published where models of its model directory have been, which
// remote.json there says (Report), and now there are none.
package transfer
