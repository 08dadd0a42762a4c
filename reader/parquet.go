package reader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/source"
)

// A Parquet file is decoded row group by row group. The units of a file share one open handle,
// which the last of them closes. Opening the input only reads the footers and closes the files
// again, because a job may have thousands of files.

// parquetFile is a Parquet file whose footer fits the plan.
type parquetFile struct {
	leaves *examples.Leaves // shared by files with the same columns; nil in a file without rows
	groups []int64          // rows of each row group
	rows   int64
}

// openParquet opens a file and parses its footer. What is wrong with its contents is an
// *InputError.
func openParquet(ctx context.Context, s *source.Sources, f source.File) (*parquetcolumn.File, error) {
	file, err := parquetcolumn.Open(ctx, s, f)
	if errors.As(err, new(*parquetcolumn.Fault)) && ctx.Err() == nil {
		err = &InputError{err}
	}
	return file, err
}

// checkParquet reads the footer and finds the plan's columns.
//
// A file without rows may have any columns, or none.
func checkParquet(ctx context.Context, s *source.Sources, f source.File, shared *examples.Shared) (*parquetFile, error) {
	open, err := openParquet(ctx, s, f)
	if err != nil {
		return nil, err
	}
	file := &parquetFile{}
	err = open.Guard(func() (err error) {
		file.groups, err = open.Groups()
		for _, rows := range file.groups {
			file.rows += rows
		}
		if err != nil || file.rows == 0 {
			return err
		}
		file.leaves, err = shared.Find(open)
		return err
	})
	return file, errors.Join(err, open.Close())
}

// planRowGroups submits the row groups of a file; false means that reading has
// ended.
func (s *stream) planRowGroups(file *inputFile) bool {
	if file.parquet.rows == 0 {
		return s.submit(&unit{file: file, stored: file.Size})
	}
	at, err := openParquet(s.ctx, s.options.Sources, file.File)
	if err != nil {
		return s.fail(file, err)
	}
	open := &openParquetFile{File: at}
	s.mu.Lock()
	s.mu.parquet[open] = struct{}{}
	s.mu.Unlock()
	open.units.Store(int64(len(file.parquet.groups) - file.from))
	if groups, _ := open.Groups(); len(groups) != len(file.parquet.groups) { // their numbers of rows were checked
		return s.fail(file, fmt.Errorf("%s: %w: it had %[4]d row groups and now has %[3]d", file.URI, source.ErrChanged, len(groups), len(file.parquet.groups)))
	}
	// The file's bytes are divided among the row groups in proportion to their rows.
	row, stored := int64(0), int64(0)
	for i, rows := range file.parquet.groups {
		u := &unit{file: file, number: i, start: row, end: row + rows, open: open}
		row += rows
		until := int64(float64(file.Size) * (float64(row) / float64(file.parquet.rows)))
		u.stored, stored = until-stored, until
		if i >= file.from && !s.submit(u) {
			return false
		}
	}
	return true
}

// openParquetFile is an open file and how many units still need it.
type openParquetFile struct {
	*parquetcolumn.File
	units atomic.Int64
}

// releaseParquet is called once for each unit of a file; the last call closes the
// file and drops its footer.
func (s *stream) releaseParquet(o *openParquetFile) error {
	if o.units.Add(-1) > 0 {
		return nil
	}
	s.mu.Lock()
	delete(s.mu.parquet, o)
	s.mu.Unlock()
	return o.Close()
}

// closeParquet closes the files whose units have not all been decoded.
func (s *stream) closeParquet() error {
	var faults []error
	for open := range s.mu.parquet {
		delete(s.mu.parquet, open)
		if err := open.Close(); err != nil {
			faults = append(faults, fmt.Errorf("reader: close %s: %w", open.URI(), err))
		}
	}
	return errors.Join(faults...)
}
