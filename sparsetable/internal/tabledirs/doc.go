// Package tabledirs handles the directories of tables: which files belong to tables (files.go),
// which directory of a table is the first, which ones are lost or outdated (dirs.go, outdated.go),
// their devices (devices.go), the catalog or a copy of it (catalog.go), and their locks (hold.go).
package tabledirs
