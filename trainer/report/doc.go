// Package report has what a job reports about itself: its progress while it runs, as a Status from
// which others get a View, and its result, as the Summary in summary.json. Their parts describe
// epochs, stages, devices, snapshots, interruptions and losses. Package trainer fills them in, and
// package jobview shows them to people.
package report
