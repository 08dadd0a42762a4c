package reader

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"

	"aibox/reader/source"
)

// Options configures a Reader. Threads, ChunkBytes, AheadChunks and
// BatchesPerPass change neither the examples nor their order nor the
// mini-batches.
type Options struct {
	Sources *source.Sources
	URIs    []string // in the order in which they are read
	// Listing is the input as it was listed for several readings, in place of URIs;
	// nil: it is listed for this one. A file that has changed since is an error.
	Listing     *source.Listing
	Schema      Schema
	Compression string // "" or "auto": by extension; else what source.ParseCompression knows

	BatchSize      int // examples per mini-batch
	BatchesPerPass int // mini-batches per pass; 0: 1

	// Limit ends the input after so many examples; 0: no limit. It counts what
	// sampling leaves.
	Limit int64
	// ShuffleBuffer puts every window of so many consecutive examples into a
	// random order that depends on (Seed, Epoch) and the window's number; 0 or 1
	// keeps the order. The window is held in memory.
	ShuffleBuffer int
	Seed          uint64
	Epoch         int
	// NegativeSampling keeps this share of the examples with label 0, chosen by
	// hash(Seed, Epoch, number of the example); 0 or 1 keeps all.
	NegativeSampling float64

	GroupBy     string   // column whose hash goes to Batch.Groups; "": none
	PassThrough []string // columns whose raw text goes to Batch.Columns
	// KeepLists has the values of a Parquet list stand between bytes 0xff in
	// Batch.Columns, as RowWriter wants them of a column with a Stored, and not
	// between the column's Separator or, without one, "|".
	KeepLists      bool
	KeepUnlabelled bool // an empty or absent label is no fault; the label is NaN

	// MaxBadRows is how many bad rows are tolerated, lost ones included, and
	// MaxBadFraction which share of all rows: exactly at the end of the input,
	// before it once no good rest could mend it (see pace). MaxLostFraction is which
	// share of the input's stored bytes may be lost (see Loss).
	// Negative: no limit. The zero values tolerate none.
	MaxBadRows      int64
	MaxBadFraction  float64
	MaxLostFraction float64
	// KeepBadRows hands a bad row on as an example without features and label,
	// which Batch.Bad marks, with what can be told of the columns passed through.
	// It is counted and limited as a bad row.
	KeepBadRows    bool
	Quarantine     io.Writer // takes bad rows and losses as JSON lines (BadRow); nil: none
	QuarantineRows int       // at most so many bad rows

	MaxLineBytes int   // a longer line is a bad row; 0: 1 MiB
	ChunkBytes   int64 // what a worker decodes at a time; 0: 4 MiB
	// Threads is how many workers decode; 0: GOMAXPROCS. Besides, up to
	// min(Threads, 8) compressed files are decompressed at the same time.
	Threads int
	// AheadChunks is how many chunks of a compressed file may be decompressed
	// before its turn; 0: 16. All files together hold at most
	// min(Threads, 8)*(AheadChunks+2) + 2*Threads+2 chunks of text. Files of much
	// more text than AheadChunks*ChunkBytes gain little from more than one thread.
	AheadChunks int
	Logger      *slog.Logger
}

const (
	defaultMaxLineBytes = 1 << 20
	// 4 MiB is some 16,000 lines of Criteo: opening a range costs nothing
	// against decoding it, and a few of them fill any number of threads.
	defaultChunkBytes = 4 << 20
	// 64 MiB of text, some 20 MB of gzip: a file of a night's log that was written
	// by many tasks is ready when its turn comes, or for a good part.
	defaultAheadChunks = 16
	// Offsets into a block are 32 bits wide and a block may hold one chunk and
	// one line beyond its bound.
	maxChunkBytes = 128 << 20
)

// withDefaults checks the options and fills defaults in.
func (o Options) withDefaults() (Options, error) {
	var faults []error
	report := func(format string, args ...any) { faults = append(faults, fmt.Errorf("reader: "+format, args...)) }
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
		report("negative sampling %v must be a share of 0 to 1", o.NegativeSampling)
	}
	if o.ChunkBytes > maxChunkBytes || o.MaxLineBytes > maxChunkBytes {
		report("chunks of %d bytes and lines of %d bytes: at most %d can be", o.ChunkBytes, o.MaxLineBytes, maxChunkBytes)
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
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(faults) > 0 {
		return o, &OptionsError{errors.Join(faults...)}
	}
	return o, nil
}
