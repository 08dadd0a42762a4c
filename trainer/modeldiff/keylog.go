package modeldiff

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"aibox/internal/tablediff"
	"aibox/reader"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeltable"
)

// keyLog reads a log for its keys. The key of a row is the hash of a field and its value, so only a
// log tells which field the row belongs to.
type keyLog struct {
	table    *modeltable.Table // its job says how to read the log
	sources  *source.Sources
	listing  *source.Listing
	examples int64 // limit on the examples read; 0 for all
	log      *slog.Logger
}

// keyLogs are the logs of a comparison.
type keyLogs []*keyLog

// openKeyLogs lists the logs that o names, or else those that the models were trained on, if they
// can be read.
func openKeyLogs(ctx context.Context, models [2]*modeltable.Table, o *Options, log *slog.Logger) (keyLogs, error) {
	before, after := models[0], models[1]
	if len(o.Data) > 0 {
		k, err := openKeyLog(ctx, after, o.Data, o.Examples, log)
		if err != nil {
			return nil, err
		}
		return keyLogs{k}, nil
	}
	if slices.Equal(before.Job.Data.Train, after.Job.Data.Train) {
		models[0] = nil
	}
	var logs keyLogs
	for _, m := range slices.Backward(models[:]) {
		if m == nil {
			continue
		}
		k, err := openKeyLog(ctx, m, m.Job.Data.Train, o.Examples, log)
		if ctx.Err() != nil {
			logs.close()
			return nil, err
		}
		if err != nil {
			log.Warn("the data that a model was trained on cannot be read, so they do not tell which fields rows belong to; --data names other data", "model", m.Model.Name, "error", err.Error())
			continue
		}
		logs = append(logs, k)
	}
	return logs, nil
}

func openKeyLog(ctx context.Context, t *modeltable.Table, uris []string, examples int64, log *slog.Logger) (*keyLog, error) {
	k := &keyLog{table: t, examples: examples, sources: jobsource.New(t.Job, log), log: log}
	var err error
	if k.listing, err = k.sources.List(ctx, uris); err != nil {
		return nil, errors.Join(err, k.sources.Close())
	}
	return k, nil
}

// close closes the clients. Nothing was written with them.
func (l keyLogs) close() {
	for _, k := range l {
		_ = k.sources.Close()
	}
}

// fields returns the fields of all logs, each once.
func (l keyLogs) fields() (names []string) {
	for _, k := range l {
		for _, name := range k.table.Schema.Fields() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// visit calls each with the keys of the logs and the indexes of their fields.
func (l keyLogs) visit(ctx context.Context, each func(field int, key uint64)) error {
	all := l.fields()
	for _, k := range l {
		var numbers []int
		for _, name := range k.table.Schema.Fields() {
			numbers = append(numbers, slices.Index(all, name))
		}
		if err := k.visit(ctx, func(field int, key uint64) { each(numbers[field], key) }); err != nil {
			return err
		}
	}
	return nil
}

// nameRows finds the values of rows whose field is known.
func (l keyLogs) nameRows(ctx context.Context, rows []tablediff.Row) error {
	for _, k := range l {
		if err := k.nameRows(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// errNamed ends reading when nothing more is needed.
var errNamed = errors.New("everything was found")

// visit calls each with the keys of the log and the indexes of their fields. A key is repeated as
// often as it occurs in the log.
func (k *keyLog) visit(ctx context.Context, each func(field int, key uint64)) error {
	return k.read(ctx, nil, func(_ *reader.Batch, _ int, field int, key uint64) error {
		each(field, key)
		return nil
	})
}

// nameRows finds the values of rows whose field is known. It reads the log until all are found.
func (k *keyLog) nameRows(ctx context.Context, rows []tablediff.Row) error {
	if k.table.Schema.Format.Indexed() {
		return nil // such rows have no columns
	}
	fields := k.table.Schema.Fields()
	wanted := map[uint64]*tablediff.Row{}
	var columns []string
	for i := range rows {
		r := &rows[i]
		if r.Value != "" || !slices.Contains(fields, r.Field) {
			continue
		}
		wanted[r.Key] = r
		if !slices.Contains(columns, r.Field) {
			columns = append(columns, r.Field)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	err := k.read(ctx, columns, func(b *reader.Batch, example, field int, key uint64) error {
		r := wanted[key]
		if r == nil || r.Field != fields[field] {
			return nil
		}
		cell := b.Columns[slices.Index(columns, r.Field)][example]
		for _, value := range k.values(r.Field, cell) {
			if of, err := k.table.Schema.KeyOf(r.Field, value); err == nil && of == key {
				r.Value = value
				break
			}
		}
		if delete(wanted, key); len(wanted) == 0 {
			return errNamed
		}
		return nil
	})
	if errors.Is(err, errNamed) {
		return nil
	}
	return err
}

// values returns the values of a cell, which may be one value or several with weights.
func (k *keyLog) values(field, cell string) []string {
	columns := k.table.Schema.Columns
	at := slices.IndexFunc(columns, func(c reader.Column) bool { return c.Name == field })
	if at < 0 { // columns of Criteo that the schema does not name hold one value
		return []string{cell}
	}
	list, weight := columns[at].ListSeparators()
	values := []string{cell}
	for value := range strings.SplitSeq(cell, list) {
		values = append(values, value)
		if i := strings.LastIndex(value, weight); i >= 0 { // a value may contain the separator
			values = append(values, value[:i])
		}
	}
	return values
}

// read calls each for every sparse feature of the log, with the given columns of the example.
func (k *keyLog) read(ctx context.Context, columns []string, each func(b *reader.Batch, example, field int, key uint64) error) error {
	o := jobparts.ReaderOptions(k.table.Job, k.sources, k.table.Schema, k.log)
	o.Listing, o.Limit, o.PassThrough, o.KeepUnlabelled, o.GroupBy = k.listing, k.examples, columns, true, ""
	o.MaxBadRows, o.MaxBadFraction, o.MaxLostFraction = -1, -1, -1 // bad rows only tell nothing of their keys
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return err
	}
	defer rd.Close() //nolint:errcheck // nothing was written
	fields := len(k.table.Schema.Fields())
	for {
		pass, err := rd.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range pass.Batches {
			b := &pass.Batches[i]
			for bag := range b.N * fields {
				for _, row := range b.Index[b.Offsets[bag]:b.Offsets[bag+1]] {
					if err := each(b, bag/fields, bag%fields, pass.Keys[b.Rows[row]]); err != nil {
						return err
					}
				}
			}
		}
		pass.Recycle()
	}
}
