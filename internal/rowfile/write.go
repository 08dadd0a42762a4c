package rowfile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"aibox/sparsetable"
)

// record is a row as it is written to Parquet; its fields are the columns.
type record struct {
	Key      uint64    `parquet:"key"`
	Values   []float32 `parquet:"values,list"`
	State    []float32 `parquet:"state,list"`
	Show     float32   `parquet:"show"`
	Click    float32   `parquet:"click"`
	LastSeen uint32    `parquet:"last_seen"`
	Count    uint32    `parquet:"count"`
}

const (
	layoutKey = "aibox.row_layout"
	// maxGroupBytes bounds a row group, which is held in memory while it is written.
	maxGroupBytes = 64 << 20
	maxGroupRows  = 1 << 16
	// batchRows is how many rows are passed to the library at a time.
	batchRows = 512
)

// Writer writes rows to a file.
type Writer struct {
	layout sparsetable.Layout
	w      *parquet.GenericWriter[record]
	batch  []record
	words  []float32 // values and state of the batch's rows
}

// createdBy is an option for the file's created_by entry. The library's own option would
// add the build to it.
type createdBy string

// ConfigureWriter implements parquet.WriterOption.
func (b createdBy) ConfigureWriter(c *parquet.WriterConfig) { c.CreatedBy = string(b) }

// NewWriter begins a file of rows of that layout. The file says that this version of aibox
// wrote it. Close completes the file; the caller closes w.
func NewWriter(w io.Writer, l sparsetable.Layout, version string) (*Writer, error) {
	layout, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	groupRows := max(1, min(maxGroupRows, maxGroupBytes/(4*(l.ValueDim+l.StateDim+6))))
	return &Writer{
		layout: l,
		w: parquet.NewGenericWriter[record](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(int64(groupRows)),
			createdBy("aibox version "+version), parquet.KeyValueMetadata(layoutKey, string(layout))),
		batch: make([]record, 0, batchRows), words: make([]float32, batchRows*(l.ValueDim+l.StateDim)),
	}, nil
}

// Add adds a row, which is copied.
func (w *Writer) Add(key uint64, row []float32) error {
	if len(row) != w.layout.Words() {
		return fmt.Errorf("rowfile: a row has %d words, want %d", len(row), w.layout.Words())
	}
	dim, all := w.layout.ValueDim, w.layout.ValueDim+w.layout.StateDim
	words := w.words[len(w.batch)*all:][:all]
	w.layout.LoadValues(words[:dim], row)
	copy(words[dim:], w.layout.State(row))
	st := w.layout.Stats(row)
	w.batch = append(w.batch, record{
		Key: key, Values: words[:dim], State: words[dim:],
		Show: st.Show, Click: st.Click, LastSeen: st.LastSeen, Count: st.Count,
	})
	if len(w.batch) < batchRows {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	_, err := w.w.Write(w.batch)
	w.batch = w.batch[:0]
	return err
}

// Close completes the file.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Close()
}
