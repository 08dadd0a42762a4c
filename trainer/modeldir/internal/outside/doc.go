// Package outside manages the directories of tables that are outside model directories: how they
// are made and locked, who owns them, and which of them nobody needs.
//
// A generation's table may be in such directories, one on each SSD of sparse_table.dirs, each with
// a unique name (run.go). They are listed in the generation before they are made, so that a run
// that deletes a generation, complete or not, knows which directories to delete with it. Their
// parents are made before the list, so the list never names a directory that cannot exist
// (places.go).
//
// # Owners
//
// OWNER.json in a table's directory says to which generation of which model directory it belongs
// (owner.go). People move, copy and delete model directories without aibox. So a table is deleted
// only if no known model names it (tables.go). Known are
//
//   - the owner, and copies that were opened (OWNER.json lists both),
//   - the directories beside the owner, and beside the one that deletes.
//
// When a model that is not the owner is opened, it is added to OWNER.json as a copy. If the owner
// no longer names the table, the model was moved, and becomes the owner. A failure to write
// OWNER.json is ignored, since a reader may lack permission.
//
// # Orphans
//
// A directory that no known model names and no run is writing is an orphan (orphans.go). The next
// run deletes it if its run was killed, or went on without it because its disk had failed
// (Run.Keep). Other orphans are deleted only on request.
//
// Package modeldir says what a model directory contains (Tables).
package outside
