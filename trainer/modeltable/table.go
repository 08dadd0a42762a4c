package modeltable

import (
	"bytes"
	"errors"
	"log/slog"

	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeldir"
	"aibox/trainer/transfer"
)

// Table is the table of a committed model, with the model and the schema of its rows.
type Table struct {
	Model  *modeldir.Model
	Job    *configs.Job
	Schema reader.Schema // with the data statistics, so that KeyOf works for every field
	// Options open the table at the model's snapshot, with the memory limit of the job.
	Options sparsetable.Options

	reading *transfer.Reading // nil if the model is complete, or Read was not called
}

// Find finds the table of the model in dir. It does not open the table. The caller closes the
// result.
func Find(dir string) (*Table, error) {
	saved, err := modeldir.Open(dir)
	if err != nil {
		return nil, err
	}
	t := &Table{Model: saved}
	if t.Job, t.Schema, err = SavedJob(saved, configs.LoadOptions{}); err == nil {
		t.Options, err = saved.TableOptions(jobparts.TableOptions(t.Job))
	}
	if err != nil {
		return nil, errors.Join(err, saved.Close())
	}
	return t, nil
}

// Read prepares the table for reading if its files have not all arrived. It must be called before
// the table is held or opened, and only for reading.
func (t *Table) Read(log *slog.Logger) (err error) {
	if t.reading == nil {
		t.reading, err = transfer.Read(t.Model, t.Job, log)
	}
	t.Options.SSD.Source = t.Model.Source
	return err
}

// NotArrived returns how many bytes were read from the remote directory because they had not
// arrived, and its URI.
func (t *Table) NotArrived() (bytes int64, uri string) {
	if bytes, uri = t.reading.Fetched(); bytes == 0 {
		uri = ""
	}
	return bytes, uri
}

// Close says that the table, which must be closed, is no longer read.
func (t *Table) Close() error { return errors.Join(t.reading.Close(), t.Model.Close()) }

// Settled returns a view of the table with its rows decayed up to the model's last step, or the
// table itself if its rows do not decay.
func (t *Table) Settled(table sparsetable.Table) (sparsetable.Table, error) {
	d, err := RowDecay(t.Model)
	if err != nil || d == nil {
		return table, err
	}
	return decay.NewTable(table, d.At(t.Model.Step)), nil
}

// TrainedWith reports whether the job that the model was trained with has the value of an override,
// written KEY=VALUE.
func (t *Table) TrainedWith(set, date string) (bool, error) {
	var shown [2]bytes.Buffer
	for i, sets := range [][]string{nil, {set}} {
		job, err := t.Model.ParseJob(configs.LoadOptions{Set: sets, Date: date})
		if err != nil {
			return false, err
		}
		if err := job.Show(&shown[i]); err != nil {
			return false, err
		}
	}
	return bytes.Equal(shown[0].Bytes(), shown[1].Bytes()), nil
}
