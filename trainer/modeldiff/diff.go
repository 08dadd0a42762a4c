package modeldiff

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"aibox/internal/tablediff"
	"aibox/sparsetable"
	"aibox/trainer/jobparts"
	"aibox/trainer/modeltable"
)

// Options are the options of Compare.
type Options struct {
	// Data are the URIs of logs that tell which field a row belongs to, in the format of the second
	// model's job. If nil, they are the data that the models were trained on, if they can still be
	// read.
	Data        []string
	Examples    int64        // limit on the examples read of Data, or of the data of each model; 0 for all
	Top         int          // how many of the rows that moved farthest to list
	MemoryBytes int64        // for the rows compared at a time, besides both tables
	Logger      *slog.Logger // nil: slog.Default()
}

// Difference is what `aibox diff` reports about the tables of two models.
type Difference struct {
	Before     string `json:"before"`
	After      string `json:"after"`
	SameDigest bool   `json:"same_digest"` // the models are equal bit for bit
	RowBefore  string `json:"row_before"`  // the values of a row, in words
	RowAfter   string `json:"row_after"`
	*tablediff.Report
}

// Compare compares the tables of the models in two model directories, or of two generations in one.
func Compare(ctx context.Context, before, after string, o Options) (_ *Difference, err error) {
	log := cmp.Or(o.Logger, slog.Default())
	var models [2]*modeltable.Table
	var tables [2]sparsetable.Table
	var rows [2]string
	for i, dir := range []string{before, after} {
		m, err := modeltable.Find(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = m.Close() }() // it was only read
		if err := m.Read(log); err != nil {
			return nil, err
		}
		o := m.Options
		o.Logger = log
		t, err := m.Model.OpenTable(ctx, o)
		if err != nil {
			return nil, err
		}
		defer closeLogged(log, t)
		models[i] = m
		spec, err := jobparts.ModelSpec(m.Job, &m.Schema)
		if err != nil {
			return nil, err
		}
		rows[i] = spec.DescribeRow()
		if tables[i], err = m.Settled(t); err != nil {
			return nil, err
		}
	}
	d := &Difference{Before: models[0].Model.Name, After: models[1].Model.Name, RowBefore: rows[0], RowAfter: rows[1]}
	d.SameDigest = models[0].Model.Digest != "" && models[0].Model.Digest == models[1].Model.Digest
	co := tablediff.Options{Top: o.Top, MemoryBytes: o.MemoryBytes, OtherValues: rows[0] != rows[1], Progress: func(step string, n, of int) {
		log.Info(step, "partition", n, "of", of)
	}}
	logs, err := openKeyLogs(ctx, models, &o, log)
	if err != nil {
		return nil, err
	}
	defer logs.close()
	if len(logs) > 0 {
		co.Fields, co.Keys = logs.fields(), logs.visit
	}
	began := time.Now()
	if d.Report, err = tablediff.Compare(ctx, tables[0], tables[1], co); err != nil {
		return nil, err
	}
	if err := logs.nameRows(ctx, d.Moved); err != nil {
		return nil, err
	}
	log.Info("tables compared", "rows_before", d.Total.Before, "rows_after", d.Total.After, "seconds", time.Since(began).Seconds())
	return d, nil
}

func closeLogged(log *slog.Logger, t sparsetable.Table) {
	if err := t.Close(); err != nil {
		log.Warn("the table could not be closed", "error", err)
	}
}
