package clicklog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"aibox/internal/generate"
	"aibox/reader"
	"aibox/reader/source"
)

// Writer writes parts of a generated log.
type Writer struct {
	generator *generate.Generator
	sources   *source.Sources
	schema    reader.Schema
	threads   int
	indexed   bool // values are written as decimal indices, or the writer would hash them
	// fill says for each column of the schema what fills it: the label, a dense column
	// or a field of the generator, or nothing.
	fill []fill
}

type fill struct {
	kind  reader.Role
	index int
	sep   string
}

// New returns a writer of g's examples in schema's format. It fails if the numbers of the
// schema's columns differ from those of the generator's.
func New(g *generate.Generator, sources *source.Sources, schema reader.Schema, threads int) (*Writer, error) {
	indexed := schema.Format == reader.FormatLibSVM || schema.Format == reader.FormatLibFFM
	if indexed {
		// The lines of this format begin with a label, which is not a column of the job.
		if !slices.ContainsFunc(schema.Columns, func(c reader.Column) bool { return c.Role == reader.RoleLabel }) {
			schema.Columns = append([]reader.Column{{Name: "label", Role: reader.RoleLabel}}, schema.Columns...)
		}
		// The job does not name their separators, either, but the writer needs them, because
		// it splits the text of cells.
		schema.Columns = slices.Clone(schema.Columns)
		for i := range schema.Columns {
			if c := &schema.Columns[i]; c.Role == reader.RoleSparse {
				c.Separator = "|"
			}
		}
	}
	w := &Writer{generator: g, sources: sources, schema: schema, threads: threads, indexed: indexed}
	cfg := g.Config()
	dense, fields, labels := 0, 0, 0
	for i := range schema.Columns {
		c := &schema.Columns[i]
		f := fill{kind: c.Role}
		switch c.Role {
		case reader.RoleDense:
			f.index = dense
			dense++
		case reader.RoleSparse:
			f.index, f.sep = fields, c.Separator
			if f.sep == "" && fields < len(cfg.Fields) && cfg.Fields[fields].MaxValues > 1 {
				return nil, fmt.Errorf("column %q has no separator, but field %q has several values: give the column one (separator: \"|\"), or the field max_values: 1", c.Name, cfg.Fields[fields].Name)
			}
			fields++
		case reader.RoleLabel:
			labels++
		}
		w.fill = append(w.fill, f)
	}
	if dense != cfg.DenseColumns || fields != len(cfg.Fields) || labels != 1 {
		return nil, fmt.Errorf("the schema has %d label, %d dense and %d sparse columns, but generate has one label, %d dense columns and %d fields: make data.columns and generate agree",
			labels, dense, fields, cfg.DenseColumns, len(cfg.Fields))
	}
	if schema.Label.Op != "" {
		return nil, fmt.Errorf("the label is %v; generated labels are 0 and 1, so data.label cannot be a threshold", schema.Label)
	}
	return w, nil
}

// Part is a range of consecutive examples of one day.
type Part struct {
	Day          int
	First, Count int64
}

// Write writes the examples of parts, in order, to one file, and adds them to
// meter. Progress, if not nil, gets the number of rows written so far.
func (w *Writer) Write(ctx context.Context, uri string, parts []Part, meter *generate.Meter, progress func(rows int64)) error {
	file, err := reader.CreateRows(ctx, w.sources, uri, w.schema.Format, w.schema)
	if err != nil {
		return err
	}
	f := formatter{w: w, cells: make([][]byte, len(w.fill))}
	rows := int64(0)
	last := time.Now()
	for _, p := range parts {
		err := w.generator.Generate(ctx, generate.Request{Day: p.Day, First: p.First, Count: p.Count, Threads: w.threads}, func(b *generate.Block) error {
			meter.Add(b)
			for i := range b.N {
				f.format(b, i)
				if err := file.Write(f.cells); err != nil {
					return err
				}
			}
			rows += int64(b.N)
			if progress != nil && time.Since(last) > time.Second {
				last = time.Now()
				progress(rows)
			}
			return nil
		})
		if err != nil {
			return errors.Join(err, file.Abort())
		}
	}
	return file.Close()
}

// formatter turns examples into cells, whose memory it uses again for the next example.
type formatter struct {
	w     *Writer
	cells [][]byte
}

func (f *formatter) format(b *generate.Block, example int) {
	g := f.w.generator
	cfg := len(b.Offsets) / max(b.N, 1) // fields
	columns := len(b.Dense) / max(b.N, 1)
	for i, c := range f.w.fill {
		cell := f.cells[i][:0]
		switch c.kind {
		case reader.RoleLabel:
			cell = strconv.AppendInt(cell, int64(b.Labels[example]), 10)
		case reader.RoleDense:
			if at := example*columns + c.index; !b.Missing[at] {
				cell = strconv.AppendFloat(cell, float64(b.Dense[at]), 'f', -1, 32)
			}
		case reader.RoleSparse:
			bag := example*cfg + c.index
			for k, id := range b.Values[b.Offsets[bag]:b.Offsets[bag+1]] {
				if k > 0 {
					cell = append(cell, c.sep...)
				}
				if f.w.indexed {
					cell = strconv.AppendUint(cell, id, 10)
				} else {
					cell = g.AppendValue(cell, c.index, id)
				}
			}
		}
		f.cells[i] = cell
	}
}
