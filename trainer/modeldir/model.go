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

	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/faults"
	"aibox/trainer/modelfiles"
	"aibox/trainer/tensorfile"
)

// Model is a committed model that is open for reading. Its files stay until Close, even if a run
// replaces it as the model.
type Model struct {
	Manifest
	Dir        string
	Name       string // as given to Open: Dir, or one of its generations
	Job        []byte // job.yaml
	Statistics []byte // statistics.json
	Dense      []tensorfile.Tensor
	// Source has the missing bytes of the table's files (see Arriving); nil if none are missing.
	Source sparsetable.Source

	reading *os.File // the lock of its generation, or nil
}

// Open reads a model, except for its table; the caller closes it. The name is a model directory,
// whose published model is read, or one of its generations, written DIR@N. If a run commits another
// model meanwhile, Open reads that one. Errors are ErrNoModel, errkind.ErrNewer and
// *CorruptionError.
func Open(name string) (*Model, error) {
	dir, number := SplitName(name)
	read := func() (*Manifest, error) { return readManifest(dir) }
	if number != 0 {
		name = JoinName(dir, number)
		read = func() (*Manifest, error) { return namedManifest(dir, number) }
	}
	for {
		m, err := read()
		if err != nil && number == 0 {
			err = notPublished(dir, err)
		}
		if err != nil {
			return nil, err
		}
		model, err := openGeneration(dir, m, read)
		if err == nil {
			model.Name = name
			return model, nil
		}
		if !changedSince(m, read) {
			return nil, err
		}
	}
}

// notPublished adds to err, the reason why dir has no model, how to publish one of its generations,
// if any can be published.
func notPublished(dir string, err error) error {
	all, _ := Generations(dir)
	i := slices.IndexFunc(all, func(g Generation) bool { return g.Fault == nil })
	switch {
	case i < 0:
		return err
	case errors.Is(err, ErrNoModel):
		err = fmt.Errorf("model directory %s: %w: there is no %s, which says which of its generations is published", dir, ErrNoModel, ManifestName)
	}
	return fmt.Errorf("%w; it has %s: `aibox rollback %s --to %d` publishes the newest that is complete", err, listed(all), humanize.ShellWord(dir), all[i].Number)
}

// genDir returns the directory of the model's generation.
func (m *Model) genDir() string { return filepath.Join(m.Dir, m.Generation) }

// Unread returns the model of dir as its manifest describes it, for a caller that replaces the
// model because other files of it are missing or damaged. It returns nil if there is none, or its
// manifest is damaged, too.
func Unread(dir string) *Model {
	m, err := readManifest(dir)
	if err != nil {
		return nil
	}
	return &Model{Manifest: *m, Dir: dir, Name: dir}
}

// changedSince reports whether read now returns another manifest than m, or none because the
// generation is gone.
func changedSince(m *Manifest, read func() (*Manifest, error)) bool {
	now, err := read()
	return err == nil && *now != *m || errors.Is(err, ErrNoModel)
}

// Close ends reading: afterwards nothing of the model, including its table, may be read. A second
// Close does nothing.
func (m *Model) Close() error {
	if m.reading == nil {
		return nil
	}
	err := m.reading.Close()
	m.reading = nil
	return err
}

// openGeneration reads the model that m describes. It fails if read returns another manifest by
// then.
func openGeneration(dir string, m *Manifest, read func() (*Manifest, error)) (model *Model, err error) {
	gen := filepath.Join(dir, m.Generation)
	model = &Model{Manifest: *m, Dir: dir, Name: dir, reading: lockReading(gen)}
	defer func() {
		if err != nil {
			err = errors.Join(err, model.Close())
			model = nil
		}
	}()
	if changedSince(m, read) { // it may have been deleted before it was locked
		return model, fmt.Errorf("model directory %s: %w: another process has changed it meanwhile; try again", dir, ErrLocked)
	}
	for _, f := range []struct {
		name, hash string
		into       *[]byte
	}{{modelfiles.Job, m.JobSHA256, &model.Job}, {modelfiles.Statistics, m.StatisticsSHA256, &model.Statistics}} {
		path := filepath.Join(gen, f.name)
		if *f.into, err = os.ReadFile(path); err != nil {
			return model, fmt.Errorf("model directory %s: %w", dir, err)
		}
		if got := hashOf(*f.into); got != f.hash {
			return model, faults.Damaged(path, fmt.Sprintf("it was changed after it was saved: its SHA-256 is %s, but %s was recorded", got, f.hash))
		}
	}
	model.Dense, err = readDenseFile(filepath.Join(gen, m.Dense))
	return model, err
}

// readDenseFile reads the tensors of a dense file.
func readDenseFile(path string) ([]tensorfile.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tensors, err := tensorfile.Read(f)
	var damaged *tensorfile.FormatError
	if errors.As(err, &damaged) {
		return nil, &CorruptionError{File: path, Offset: damaged.Offset, Reason: damaged.Reason}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return tensors, nil
}

// Tensor returns the dense tensor called name, or nil.
func (m *Model) Tensor(name string) *tensorfile.Tensor {
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

// Digest returns the SHA-256 of a model: of its step, the share of negatives it was trained on, the
// data statistics, the dense tensors in the order of their names, and the digest of the table. Two
// models of the same job with equal digests make the same predictions, and training continues from
// them in the same way.
func Digest(step int64, keptShare float64, statistics []byte, dense []tensorfile.Tensor, table [32]byte) string {
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
	slices.SortFunc(sorted, func(a, b tensorfile.Tensor) int { return strings.Compare(a.Name, b.Name) })
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
