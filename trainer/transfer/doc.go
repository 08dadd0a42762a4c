// Package transfer moves models between model directories (package modeldir) and remote directories
// (package remote).
//
//	Publish    model directory -> remote directory: the model and, before it, those from which
//	           it was made that could not be published in their nights
//	Restore    remote directory -> model directory: the newest complete model
//	Complete   fetches what is missing from a model that is usable but has not all arrived
//	Read       lets a reader of such a model read what is missing from the remote directory
//
// FetchFiles and OpenArriving are parts of Restore and Complete that snapshots of a run need, too. They
// bring the files of a generation or snapshot to the places that a modeldir.Restoring has for them,
// and fetch the missing bytes of files that are used while they arrive.
//
// # A remote directory that is not mounted
//
// A remote directory may be on a file system that has to be mounted. If that is not mounted, the
// directory looks empty or missing, which must not count as a directory without models. So
// operations that depend on the contents of the directory open it by OpenPresent, which fails if
// the directory does not exist. And a model is not published to a directory that has no models, but
// has had models of the same model directory according to remote.json there (Report).
package transfer
