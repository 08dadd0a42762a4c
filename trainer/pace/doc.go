// Package pace chooses when a run is saved, from what saving costs and what a failure would cost.
//
//	Snapshots   when a local snapshot is due, with snapshots.every: auto: so rarely that all take half a per
//	            cent of the time at most
//	Uploads     which of these are uploaded to snapshots.remote, so that uploading and training again after a
//	            failure take least time together, or as few samples are lost as the job allows (CPR); and when
//	            rows are saved by priority in between
//
// Both are told what was saved and how long it took, and save nothing themselves. They belong to
// the goroutine that trains. The model does not depend on when a run is saved.
package pace
