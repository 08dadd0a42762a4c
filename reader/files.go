package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"aibox/internal/humanize"
	"aibox/internal/panics"
	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/parquetcolumn"
	"aibox/reader/source"
)

// inputFile is one file of the input, checked against the schema.
type inputFile struct {
	source.File
	number  int               // among the files that are not empty
	from    int               // the first of its units that is read
	cells   *examples.CellMap // delimited formats
	parquet *parquetFile      // Parquet
	empty   bool              // there is nothing in it, not even a header
	damaged *faults.Damage    // why nothing of the file can be read; nil: it can be read
}

// openAhead is how many files are opened at the same time when headers and
// footers are checked: enough to hide the round trips of HDFS.
const openAhead = 16

// unchanged checks the files of a listing, so that a file that has changed since then is found
// before anything is read.
func unchanged(ctx context.Context, o *Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(openAhead)
	for _, f := range o.Listing.Files {
		group.Go(func() error {
			return panics.Do("looking for changes of "+f.URI, func() error { return o.Sources.Unchanged(ctx, f) })
		})
	}
	return group.Wait()
}

// listFiles lists the input, or checks its listing. Files of 0 bytes are left out.
func listFiles(ctx context.Context, o *Options) (files []*inputFile, total int64, err error) {
	listing := o.Listing
	if listing == nil {
		listing, err = o.Sources.List(ctx, o.URIs)
	} else {
		err = unchanged(ctx, o)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reader: %w", err)
	}
	for _, f := range listing.Files {
		if f.Size == 0 {
			continue
		}
		if o.Compression != "" && o.Compression != "auto" {
			if f.Compression, err = source.ParseCompression(o.Compression); err != nil {
				return nil, 0, fmt.Errorf("reader: %w", err)
			}
		}
		files = append(files, &inputFile{File: f, number: len(files)})
		total += f.Size
	}
	if len(files) == 0 {
		return nil, 0, fmt.Errorf("reader: %s: %s, all empty: %w", strings.Join(o.URIs, ", "), humanize.Count(int64(len(listing.Files)), "file"), ErrNoExamples)
	}
	return files, total, nil
}

// openFiles lists the input and checks the header or footer of every file to be read against the
// plan, so that a file of the wrong kind is found immediately and not after hours.
func openFiles(ctx context.Context, o *Options, p *examples.Plan) (files []*inputFile, total int64, err error) {
	files, total, err = listFiles(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	needed := files
	if o.Start != nil {
		if err := o.Start.fits(o.settings(), listed(files)); err != nil {
			return nil, 0, err
		}
	}
	if at := startOf(o); at != nil {
		if at.File < 0 || at.File >= len(files) || at.Unit < 0 {
			return nil, 0, errNoSuchPlace
		}
		needed = files[at.File:]
		needed[0].from = at.Unit
	}
	shared := examples.NewShared(p)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(openAhead)
	for _, f := range needed {
		group.Go(func() error {
			if err := panics.Do("opening "+f.URI, func() error { return f.check(ctx, o, p, shared) }); err != nil {
				return fmt.Errorf("reader: %w", err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	if err := sameUnits(needed, p); err != nil {
		return nil, 0, err
	}
	return files, total, nil
}

// sameUnits refuses Parquet files whose time columns use other units than earlier files do, because
// their integers cannot be compared.
func sameUnits(files []*inputFile, p *examples.Plan) (err error) {
	type counted struct{ unit, uri string }
	first := map[string]counted{}          // by column
	checked := map[*examples.Leaves]bool{} // which many files share
	for _, f := range files {
		if f.parquet == nil || f.parquet.leaves == nil || checked[f.parquet.leaves] {
			continue
		}
		checked[f.parquet.leaves] = true
		p.Units(f.parquet.leaves, func(column, unit string) {
			before, found := first[column]
			if !found {
				first[column] = counted{unit, f.URI}
			} else if before.unit != unit && err == nil {
				err = fmt.Errorf("reader: %s: the unit of column %q is %s, but %s in %s: write all files with the same unit", f.URI, column, unit, before.unit, before.uri)
			}
		})
	}
	return err
}

// listed are the files as they were listed.
func listed(files []*inputFile) (list []source.File) {
	for _, f := range files {
		list = append(list, f.File)
	}
	return list
}

// damagedWhole says whether an error of reading a header or footer means that the file is
// of the right kind, but so damaged that nothing of it can be read.
func damagedWhole(err error) bool {
	var footer *parquetcolumn.Fault
	return errors.As(err, &footer) && footer.Damaged || badStream(err)
}

// unreadable notes that the whole file is lost, if that is what the error means, and
// returns any other error.
func (f *inputFile) unreadable(err error) error {
	if !damagedWhole(err) {
		return err
	}
	f.damaged = &faults.Damage{Cause: strings.TrimPrefix(err.Error(), f.URI+": "), Bytes: f.Size, Rows: -1, Cut: faults.CutShort(err)}
	var footer *parquetcolumn.Fault
	if errors.As(err, &footer) {
		f.damaged.Offset, f.damaged.Cut = -1, footer.Cut
	}
	return nil
}

// orDamage returns fault, which is about the header of the file, unless the file is compressed and
// damaged: then the damage may have altered the header.
func (f *inputFile) orDamage(ctx context.Context, o *Options, fault error) error {
	if f.Compression == source.NoCompression || damagedWhole(fault) || errors.As(fault, new(*source.Error)) {
		return fault
	}
	raw, err := o.Sources.OpenRange(ctx, f.File, 0)
	if err != nil {
		return fault
	}
	defer func() { _ = raw.Close() }() // only read
	text, err := source.Decompress(f.Compression, raw)
	if err == nil {
		_, err = io.Copy(io.Discard, text)
		_ = text.Close() // a decoder
	}
	if damagedWhole(err) {
		return fmt.Errorf("%s: no header: %w", f.URI, err)
	}
	return fault
}

// check finds the plan's columns in the file.
func (f *inputFile) check(ctx context.Context, o *Options, p *examples.Plan, shared *examples.Shared) error {
	switch {
	case p.Schema.Format == FormatParquet:
		if f.Compression != source.NoCompression {
			return fmt.Errorf("%s: a Parquet file compressed as a whole (%v) cannot be read; decompress it", f.URI, f.Compression)
		}
		file, err := checkParquet(ctx, o.Sources, f.File, shared)
		if err != nil {
			return f.unreadable(err)
		}
		f.parquet = file
		return nil
	case !p.Schema.Format.Delimited():
		return p.CheckTokens()
	}
	var names []string
	if p.Schema.Header {
		var err error
		switch names, err = f.header(ctx, o, p); {
		case errors.Is(err, errNothing):
			f.empty = true
			return nil
		case err != nil:
			return f.unreadable(f.orDamage(ctx, o, err))
		}
	}
	cells, err := shared.MapCells(f.URI, names)
	switch {
	case err != nil && p.Schema.Header:
		return f.unreadable(f.orDamage(ctx, o, err))
	case err != nil:
		return err
	}
	f.cells = cells
	if p.MayLackLabel(cells) && f.lacksLabel(ctx, o, p, cells) {
		f.cells = cells.WithoutLabel(p)
	}
	return nil
}

// rowsInFooters is how many rows the files have; -1 if they are not all Parquet.
func rowsInFooters(files []*inputFile) (rows int64) {
	for _, f := range files {
		if f.parquet == nil {
			return -1
		}
		rows += f.parquet.rows
	}
	return rows
}

// mixed reports whether the files use more than one compression format.
func mixed(files []*inputFile) bool {
	return slices.ContainsFunc(files, func(f *inputFile) bool { return f.Compression != files[0].Compression })
}
