// Package disk changes files so that a crash of the machine leaves either the old or the complete
// new state (change.go, linktree.go). It also determines what paths lead to (paths.go), whether a
// file system is mounted (mounted.go), how much space it has left (free.go) and whether it has run
// out of inodes (inodes.go).
package disk
