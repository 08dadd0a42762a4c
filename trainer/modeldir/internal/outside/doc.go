// Package outside has the directories of tables that are outside of model directories: how they are
// made and locked, whose they are, and which of them nobody needs.
//
// A generation's table may be in such directories, one on each SSD of sparse_table.dirs, each with
// a unique name (run.go). They are listed in the generation before they are made, so that a run
// that deletes a generation, complete or not, knows which directories to delete with it. Their
// parents are made before the list, so that it never names a directory that cannot exist
// (places.go).
//
// # Owners
//
// A directory of a table says in OWNER.json to which generation of which model directory it belongs
// (owner.go). People move, copy and delete model directories without aibox. So a table is deleted
// only if no known model names it (tables.go); known are
//
//   - the owner, and the copies that were opened (OWNER.json lists both),
//   - the directories beside the owner, and beside the one that wants to delete.
//
// When a model that is not the owner is opened, it is added to OWNER.json as a copy. If the owner
// does not name the table any more, the model was moved, and becomes the owner. A failure to write
// OWNER.json is ignored, since a reader may lack permission.
//
// # Orphans
//
// What no known model names and no run is writing is an orphan (orphans.go). It is deleted by the
// next run if its run was killed, or went on without it since its disk had failed (Run.Keep), and
// else if somebody says so.
//
// What a model directory holds is asked of package modeldir (Tables).
package outside
