package modeldir

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Model is a committed model, opened for reading. Its files stay until Close, even if
// a run puts another model in its place.
type Model struct {
	Manifest
	Dir        string
	Job        []byte // job.yaml
	Statistics []byte // statistics.json
	Dense      []Tensor

	reading *os.File // the lock of its generation, or nil
}

// Open reads the committed model of dir, except its table; the caller closes it. If a
// run commits another model meanwhile, Open reads that one. Errors are ErrNoModel,
// ErrNewer and *CorruptionError.
func Open(dir string) (*Model, error) {
	for {
		m, err := readManifest(dir)
		if err != nil {
			return nil, err
		}
		model, err := openGeneration(dir, m)
		if err == nil || !changedSince(dir, m) {
			return model, err
		}
	}
}

// changedSince reports whether dir now has another model than m.
func changedSince(dir string, m *Manifest) bool {
	now, err := readManifest(dir)
	return err == nil && *now != *m
}

// Close ends reading: nothing of the model, including its table, may be read after it.
// A second Close does nothing.
func (m *Model) Close() error {
	if m.reading == nil {
		return nil
	}
	err := m.reading.Close()
	m.reading = nil
	return err
}

// openGeneration reads the model that m describes. It fails if that is no longer the
// model of dir.
func openGeneration(dir string, m *Manifest) (model *Model, err error) {
	gen := filepath.Join(dir, m.Generation)
	model = &Model{Manifest: *m, Dir: dir, reading: lockReading(gen)}
	defer func() {
		if err != nil {
			err = errors.Join(err, model.Close())
			model = nil
		}
	}()
	if changedSince(dir, m) { // it may have been deleted before it was locked
		return model, fmt.Errorf("model directory %s: %w: it was written meanwhile; try again", dir, ErrLocked)
	}
	for _, f := range []struct {
		name, hash string
		into       *[]byte
	}{{jobName, m.JobSHA256, &model.Job}, {statisticsName, m.StatisticsSHA256, &model.Statistics}} {
		path := filepath.Join(gen, f.name)
		if *f.into, err = os.ReadFile(path); err != nil {
			return model, fmt.Errorf("model directory %s: %w", dir, err)
		}
		if got := hashOf(*f.into); got != f.hash {
			return model, &CorruptionError{path, noOffset, fmt.Sprintf("it was changed after it was saved: its SHA-256 is %s, but %s was recorded", got, f.hash)}
		}
	}
	model.Dense, err = readDenseFile(filepath.Join(gen, m.Dense))
	return model, err
}

// Tensor returns the dense tensor called name, or nil.
func (m *Model) Tensor(name string) *Tensor {
	for i := range m.Dense {
		if m.Dense[i].Name == name {
			return &m.Dense[i]
		}
	}
	return nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Digest is the SHA-256 of a model: its step, the share of negatives it was
// trained on, the data statistics, the dense tensors in the order of their
// names, and the digest of the table. Two models of the same job with equal digests make
// the same predictions, and training continues from them in the same way.
func Digest(step int64, keptShare float64, statistics []byte, dense []Tensor, table [32]byte) string {
	h := sha256.New()
	var word [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(word[:], v)
		h.Write(word[:])
	}
	put(uint64(step))
	put(math.Float64bits(keptShare))
	put(uint64(len(statistics)))
	h.Write(statistics)
	sorted := slices.Clone(dense)
	slices.SortFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	var raw []byte
	for _, t := range sorted {
		put(uint64(len(t.Name)))
		h.Write([]byte(t.Name))
		put(uint64(len(t.Shape)))
		for _, d := range t.Shape {
			put(uint64(d))
		}
		raw = raw[:0]
		for _, v := range t.Data {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		h.Write(raw)
	}
	h.Write(table[:])
	return hex.EncodeToString(h.Sum(nil))
}
