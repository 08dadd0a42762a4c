package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// A model names the snapshot of its table by its id. A command that replaces the
// snapshot of a table which is named by its own directory must not do so to that of
// a model, which could not be opened any more.

// Directories of models' tables, as trainer/modeldir names them: in a generation,
// and elsewhere, after the model.
var (
	generationName = regexp.MustCompile(`^gen-[0-9]{6,}$`)
	placeName      = regexp.MustCompile(`^(.*)-gen-[0-9]{6,}-[0-9a-f]{8}$`)
)

// refuseModelDirs refuses directories of a table that are a model's by their
// names.
func refuseModelDirs(c *cli.Context, dirs ...string) error {
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		paths := []string{abs}
		if real, err := filepath.EvalSymlinks(abs); err == nil { // otherwise it is not there
			paths = append(paths, real)
		}
		for _, path := range paths {
			if m := placeName.FindStringSubmatch(filepath.Base(path)); m != nil {
				return ofModel(c, dir, "the model "+m[1], "MODEL_DIR")
			}
			if gen := filepath.Dir(path); filepath.Base(path) == "table" && generationName.MatchString(filepath.Base(gen)) {
				model := filepath.Dir(gen)
				return ofModel(c, dir, "the model in "+model, model)
			}
		}
	}
	return nil
}

// ofModel says that the table in dir is a model's.
func ofModel(c *cli.Context, dir, model, modelDir string) error {
	if c.Command.Name == "compact" {
		return cliargs.Errorf("%s: the table in %s belongs to %s, which has to learn of the new snapshot; name the model directory: `aibox table compact %s`", cliargs.CommandPath(c), dir, model, modelDir)
	}
	return cliargs.Errorf("%s: the table in %s belongs to %s, and is written by training alone; import into a directory of its own", cliargs.CommandPath(c), dir, model)
}

// refuseModelSnapshots refuses the table in dir if it has a snapshot that was
// taken for a model.
func refuseModelSnapshots(c *cli.Context, dir string, infos []sparsetable.SnapshotInfo) error {
	for _, info := range infos {
		if isModelRecord(info.Record) {
			return cliargs.Errorf("%s: the table in %s is a model's, or was copied from one: its snapshot %d has the record of one; nothing was changed. To have a table of these rows, `aibox table export` them and `aibox table import` them into a new directory", cliargs.CommandPath(c), dir, info.ID)
		}
	}
	return nil
}

// isModelRecord says whether record is that of a model's snapshot.
func isModelRecord(record []byte) bool {
	var m modeldir.Manifest
	fields := struct {
		Step  *int64  `json:"step"`
		Dense *string `json:"dense"`
	}{&m.Step, &m.Dense}
	return json.Unmarshal(record, &fields) == nil && m.Dense != "" && bytes.Equal(m.TableRecord(), record)
}
