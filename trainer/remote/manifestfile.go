package remote

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"aibox/internal/errkind"
)

// manifestFile is the contents of a manifest's file.
type manifestFile struct {
	SHA256   string          `json:"sha256"` // of Manifest without white space between tokens
	Manifest json.RawMessage `json:"manifest"`
}

// encode returns the manifest as a file. That of a generation is also for people to read. What a
// run uploads again and again is compressed: a manifest with the state of a run would otherwise
// take more than the rows that change in a minute.
func (m *Manifest) encode() ([]byte, error) {
	data, err := json.Marshal(m)
	if err == nil && m.FormatVersion > plainVersion {
		data, err = compress(m, data)
	}
	if err != nil {
		return nil, err
	}
	sum, err := compactSum(data)
	if err != nil {
		return nil, err
	}
	data, err = json.MarshalIndent(manifestFile{sum, data}, "", " ")
	return append(data, '\n'), err
}

// compressed is a manifest whose contents are compressed. From the other fields, earlier versions
// of aibox learn that they cannot read it.
type compressed struct {
	FormatVersion int    `json:"format_version"`
	AiboxVersion  string `json:"aibox_version"`
	Job           string `json:"job,omitempty"`
	Deflated      []byte `json:"deflated,omitempty"` // the manifest as JSON
}

func compress(m *Manifest, data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return json.Marshal(compressed{m.FormatVersion, m.AiboxVersion, m.Job, b.Bytes()})
}

// maxManifestBytes is far more than a manifest of a million files takes. It keeps a damaged
// manifest from filling the memory.
const maxManifestBytes = 1 << 30

func decompress(deflated []byte) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(deflated)), maxManifestBytes))
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	return data, nil
}

func compactSum(data []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return "", err
	}
	return sumOf(b.Bytes()), nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// NewerError says that a newer version of aibox has written a manifest. It wraps errkind.ErrNewer.
type NewerError struct {
	URI          string // of the file
	Number       int    // in its name
	Job          string // "" if unknown
	Format       int
	AiboxVersion string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has format %d, written by aibox %s; %v: this binary reads up to %d", e.URI, e.Format, e.AiboxVersion, errkind.ErrNewer, FormatVersion)
}

func (*NewerError) Unwrap() error { return errkind.ErrNewer }

// decode decodes a manifest and checks it.
func decode(data []byte) (*Manifest, error) {
	var f manifestFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	sum, err := compactSum(f.Manifest)
	if err != nil {
		return nil, err
	}
	if sum != f.SHA256 {
		return nil, fmt.Errorf("its SHA-256 is %s, but %s was recorded", sum, f.SHA256)
	}
	var version compressed
	if err := json.Unmarshal(f.Manifest, &version); err != nil {
		return nil, err
	}
	if version.FormatVersion > FormatVersion {
		return nil, &NewerError{Job: version.Job, Format: version.FormatVersion, AiboxVersion: version.AiboxVersion}
	}
	if version.Deflated != nil {
		if f.Manifest, err = decompress(version.Deflated); err != nil {
			return nil, err
		}
	}
	m := new(Manifest)
	if err := json.Unmarshal(f.Manifest, m); err != nil {
		return nil, err
	}
	return m, m.validate()
}
