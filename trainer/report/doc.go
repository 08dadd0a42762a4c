// Package report has what a job says of itself: how far it is while it runs, as a Status that shows others a
// View, and what became of it, as the Summary in summary.json. Their parts describe epochs, stages, devices,
// snapshots, interruptions and losses. Package trainer fills them in; package jobview shows them to people.
package report
