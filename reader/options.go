package reader

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"aibox/internal/cores"
	"aibox/reader/internal/examples"
	"aibox/reader/source"
)

// Options configures a Reader. Threads, ChunkBytes, AheadChunks and BatchesPerPass
// have no influence on the examples, their order or the mini-batches.
type Options struct {
	Sources *source.Sources
	URIs    []string // in the order in which they are read
	// Listing is a listing of the input that several readings share; it is used in
	// place of URIs. If it is nil, Open lists the URIs. A file that has changed since
	// it was listed is an error.
	Listing     *source.Listing
	Schema      Schema
	Compression string // "" or "auto": by extension; else what source.ParseCompression knows

	// Start is where reading begins: the Cursor of a pass of an earlier reading; nil: at
	// the beginning. Only Open uses it.
	Start *Cursor

	BatchSize      int // examples per mini-batch
	BatchesPerPass int // mini-batches per pass; 0: 1

	// Limit ends the input after this many examples; 0: no limit. It counts the examples that
	// sampling keeps.
	Limit int64
	// ShuffleBuffer is the number of consecutive examples in a window that is
	// shuffled. The random order depends on (Seed, Epoch) and the window's number; 0
	// or 1 keeps the order of the input. The window is held in memory.
	ShuffleBuffer int
	Seed          uint64
	Epoch         int
	// NegativeSampling keeps this share of the examples with label 0, chosen by
	// hash(Seed, Epoch, number of the example); 0 or 1 keeps all.
	NegativeSampling float64

	// Split, if it is not nil, limits reading to a part of the input. It must be the
	// SplitTail of the same input with the same options. The rows of a part are
	// counted, judged and numbered as if the other part did not exist; Limit applies to
	// each part. Reading cannot start at a Cursor in a tail.
	Split *Split
	Part  Part

	GroupBy     string   // column whose hash goes to Batch.Groups; "": none
	PassThrough []string // columns whose raw text goes to Batch.Columns
	// KeepLists separates the values of a Parquet list in Batch.Columns by 0xff bytes, as a RowFile
	// expects them in a column that has Column.Stored. Otherwise, the separator is the column's
	// Separator or, if there is none, "|".
	KeepLists bool
	// PlainLists makes a row bad if a value in such a list contains the separating "|".
	PlainLists bool
	// Whole makes OpenRaw refuse a file with columns that the schema lacks.
	Whole          bool
	KeepUnlabelled bool // an empty or absent label is no fault; the label is NaN

	// MaxBadRows limits the number of bad rows, including lost ones, and MaxBadFraction their share
	// of all rows. The share is checked at the end of the input. Reading ends earlier if the share
	// would exceed the limit even if all remaining rows were good (see package faults).
	// MaxLostFraction limits the share of the input's stored bytes that is lost (see Loss). A
	// negative value means no limit; the zero values tolerate no bad row and no loss.
	MaxBadRows      int64
	MaxBadFraction  float64
	MaxLostFraction float64
	// KeepBadRows emits a bad row as an example without features and label, marked in Batch.Bad,
	// whose pass-through columns hold whatever could be read. It still counts as a bad row. A row
	// lost in a damaged Parquet page is emitted in the same way, with empty columns, and still
	// counts as lost.
	KeepBadRows    bool
	Quarantine     io.Writer // takes bad rows and losses as JSON lines (BadRow); nil: none
	QuarantineRows int       // how many bad rows are written to Quarantine at most
	// HideCells keeps the text of bad rows, which may hold personal data, out of the log, errors
	// and counts; they then name only the column and the position.
	HideCells bool

	MaxLineBytes int   // a longer line is a bad row, one of more than twice as much also a Loss; 0: 1 MiB
	ChunkBytes   int64 // how many bytes of text a worker decodes at a time; 0: 4 MiB
	// Threads is how many workers decode and make mini-batches; 0: GOMAXPROCS. In addition, up to
	// min(Threads, 8) compressed files are decompressed at the same time.
	Threads int
	// AheadChunks is how many chunks of a compressed file may be decompressed
	// before its turn; 0: 16. All files together hold at most
	// min(Threads, 8)*(AheadChunks+2) + 2*Threads+2 chunks of text. Files of much
	// more text than AheadChunks*ChunkBytes gain little from more than one thread.
	AheadChunks int
	Logger      *slog.Logger

	// oneByOne decodes every value of Parquet by itself, also those of simple columns
	// (see parquetcolumn.Column.Simplify). Tests compare both ways.
	oneByOne bool
}

const (
	defaultMaxLineBytes = 1 << 20
	// 4 MiB hold about 16,000 lines of Criteo: opening such a range takes far less time than
	// decoding it, and there are enough ranges for all threads.
	defaultChunkBytes = 4 << 20
	// 16 chunks are 64 MiB of text, or about 20 MB of gzip. A file of a nightly log that many tasks
	// wrote is then largely or entirely decompressed when its turn comes.
	defaultAheadChunks = 16
	// Offsets into a block are 32 bits wide, and a block may exceed its bound
	// (blockBytes) by one chunk and one line.
	maxChunkBytes = 128 << 20
)

// withDefaults checks the options and returns them with the defaults filled in.
func (o Options) withDefaults() (Options, error) {
	var wrong []error
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("reader: "+format, args...)) }
	if o.Sources == nil {
		report("no Sources")
	}
	if o.Listing != nil {
		o.URIs = o.Listing.URIs
	}
	if len(o.URIs) == 0 {
		report("no URIs: %w", ErrNoExamples)
	}
	if o.BatchSize <= 0 {
		report("batch size %d must be positive", o.BatchSize)
	}
	if o.BatchesPerPass < 0 || o.Limit < 0 || o.ShuffleBuffer < 0 || o.MaxLineBytes < 0 || o.ChunkBytes < 0 || o.Threads < 0 ||
		o.AheadChunks < 0 {
		report("batches per pass, limit, shuffle buffer, line length, chunk size, threads and chunks ahead must not be negative")
	}
	if !(o.NegativeSampling >= 0 && o.NegativeSampling <= 1) {
		report("negative sampling %v must be a share between 0 and 1", o.NegativeSampling)
	}
	if o.ChunkBytes > maxChunkBytes || o.MaxLineBytes > maxChunkBytes {
		report("chunk size %d and line length %d must be at most %d bytes", o.ChunkBytes, o.MaxLineBytes, maxChunkBytes)
	}
	if o.Compression != "" && o.Compression != "auto" {
		if _, err := source.ParseCompression(o.Compression); err != nil {
			report("%w", err)
		}
	}
	if o.BatchesPerPass == 0 {
		o.BatchesPerPass = 1
	}
	if o.NegativeSampling == 0 {
		o.NegativeSampling = 1
	}
	if o.MaxLineBytes == 0 {
		o.MaxLineBytes = defaultMaxLineBytes
	}
	if o.ChunkBytes == 0 {
		o.ChunkBytes = defaultChunkBytes
	}
	if o.AheadChunks == 0 {
		o.AheadChunks = defaultAheadChunks
	}
	if o.Threads == 0 {
		o.Threads = cores.Count()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(wrong) > 0 {
		return o, &OptionsError{Err: errors.Join(wrong...)}
	}
	return o, nil
}

// compile makes the plan for training and prediction. Its errors are *OptionsError.
func compile(o *Options) (*examples.Plan, error) {
	return examples.New(examples.Options{
		Schema: o.Schema, GroupBy: o.GroupBy, PassThrough: o.PassThrough, KeepLists: o.KeepLists, PlainLists: o.PlainLists,
		KeepUnlabelled: o.KeepUnlabelled, KeepBadRows: o.KeepBadRows, OneByOne: o.oneByOne,
	})
}
