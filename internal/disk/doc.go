// Package disk changes files so that a crash of the machine leaves either what was there or all of what shall be there
// (change.go, linktree.go), and asks what paths lead to (paths.go) and whether that is mounted (mounted.go).
package disk
