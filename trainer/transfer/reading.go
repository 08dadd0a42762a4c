package transfer

import (
	"errors"
	"fmt"
	"log/slog"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/jobsource"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// Reading reads a model whose files have not all arrived, without taking part in fetching them. The
// methods of a nil Reading do nothing.
type Reading struct {
	from    *remote.Reading
	uri     string
	sources *source.Sources
	log     *slog.Logger
}

// Read makes what is missing from the files of a model, whose job is given, be read from the remote
// directory. It does nothing if the model is complete.
func Read(m *modeldir.Model, job *configs.Job, log *slog.Logger) (*Reading, error) {
	t := m.Arriving()
	if t == nil {
		return nil, nil
	}
	said, err := Announced(m, t.Records)
	if said == nil {
		return nil, err
	}
	r := &Reading{uri: said.URI, sources: jobsource.New(job, log), log: log}
	d, err := Open(r.sources, said.URI, int64(job.Output.RemoteBytesPerSecond), "reading", log)
	if err == nil {
		r.from, err = d.OpenReading(t.Records, t.Find)
	}
	if err != nil || r.from == nil {
		return nil, errors.Join(err, r.sources.Close())
	}
	m.Source = r.from
	log.Info("some files of the model have not arrived yet; what is missing is read from the remote directory", "model", m.Name, "remote", said.URI, "bytes_lacking_at_most", said.LackingBytes, "cache_bytes_at_most", int64(remote.ReadingCacheBytes))
	return r, nil
}

// Announced returns the contents of the record of a model's table; nil if it no longer exists,
// since everything has arrived. An error says that the files will never be complete.
func Announced(m *modeldir.Model, records []string) (*remote.Announced, error) {
	said, err := remote.AnnouncedIn(records...)
	if err == nil && said != nil {
		err = said.Fault()
	}
	if err != nil {
		return nil, errkind.As(errkind.IO, fmt.Errorf("the model %s cannot be completed: %w; `aibox restore` to its directory removes it and restores it again, or an older one", m.Name, err))
	}
	return said, nil
}

// Fetched returns how many bytes were read from the remote directory, and its URI.
func (r *Reading) Fetched() (bytes int64, uri string) {
	if r == nil {
		return 0, ""
	}
	return r.from.Stats().FetchedBytes, r.uri
}

// Close must be called when the table is closed.
func (r *Reading) Close() error {
	if r == nil {
		return nil
	}
	r.from.Close()
	s := r.from.Stats()
	r.log.Info("read from the remote directory, since it had not arrived", "remote", r.uri, "fetched_bytes", s.FetchedBytes, "chunks", s.Fetches, "chunks_from_cache", s.Hits, "cache_bytes", s.CacheBytes)
	return r.sources.Close()
}
