// Package pace decides when a run is saved, from what saving costs and what a failure would cost.
//
//	Snapshots   when a local snapshot is due; with snapshots.every: auto, so rarely that
//	            snapshots take at most half a per cent of the time
//	Uploads     which snapshots are uploaded to snapshots.remote, so that uploading, and training
//	            again after a failure, take the least time together, or that as few samples are
//	            lost as the job demands (CPR); and when rows are saved by priority in between
//
// Both are told what was saved and how long it took, and save nothing themselves. They belong to
// the training goroutine. The model does not depend on when a run is saved.
package pace
