// Package tabledirs has the directories of tables: which files are tables' (files.go), which of a
// table's directories is the first, and which are lost or outdated (dirs.go, outdated.go), their
// devices (devices.go), the catalog or a copy of it (catalog.go), and their locks (hold.go).
package tabledirs
