package tablecmd

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// A model refers to the snapshot of its table by ID. A command that replaces the snapshot of a
// table must therefore refuse a model's table that the command line names by its own directory: the
// model could no longer be opened.

// refuseModelDirs fails if the name of one of the directories of a table shows that
// the table is a model's.
func refuseModelDirs(c *cli.Context, dirs ...string) error {
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		paths := []string{abs}
		if real, err := filepath.EvalSymlinks(abs); err == nil { // otherwise it does not exist
			paths = append(paths, real)
		}
		for _, path := range paths {
			switch model, inside, ok := modeldir.TableOf(path); {
			case inside:
				return ofModel(c, dir, "the model in "+model, model)
			case ok:
				return ofModel(c, dir, "the model "+model, "MODEL_DIR")
			}
		}
	}
	return nil
}

// ofModel returns the error that the table in dir is a model's.
func ofModel(c *cli.Context, dir, model, modelDir string) error {
	if c.Command.Name == "compact" {
		return cliargs.Errorf("%s: the table in %s belongs to %s, in which the new snapshot must be recorded; name the model directory: `aibox table compact %s`", cliargs.CommandPath(c), dir, model, humanize.ShellWord(modelDir))
	}
	return cliargs.Errorf("%s: the table in %s belongs to %s, and only training writes it; import into another directory", cliargs.CommandPath(c), dir, model)
}

// refuseModelSnapshots fails if the table in dir has a snapshot that was taken for a
// model.
func refuseModelSnapshots(c *cli.Context, dir string, infos []sparsetable.SnapshotInfo) error {
	for _, info := range infos {
		if isModelRecord(info.Record) {
			return cliargs.Errorf("%s: the table in %s is a model's, or was copied from one: its snapshot %d was taken for a model; nothing was changed. To make a table of these rows, use `aibox table export`, and `aibox table import` into a new directory", cliargs.CommandPath(c), dir, info.ID)
		}
	}
	return nil
}

// isModelRecord reports whether record is that of a snapshot taken for a model.
func isModelRecord(record []byte) bool {
	var m modeldir.Manifest
	fields := struct {
		Step  *int64  `json:"step"`
		Dense *string `json:"dense"`
	}{&m.Step, &m.Dense}
	return json.Unmarshal(record, &fields) == nil && m.Dense != "" && bytes.Equal(m.TableRecord(), record)
}
