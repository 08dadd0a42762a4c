// Package disk changes files so that a crash of the machine leaves either what was there or all of
// what shall be there (change.go, linktree.go), and asks what paths lead to (paths.go), whether
// that is mounted (mounted.go), how much space it has left (free.go) and whether it lacks room for
// files (inodes.go).
package disk
