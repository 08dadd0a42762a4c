package transfer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"aibox/internal/errkind"
	"aibox/internal/humanize"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/remote"
)

// ErrEmptied says that a remote directory on a mounted file system is empty, although it should
// have models.
var ErrEmptied = errkind.New(errkind.IO, "it had models, but has none now")

// checkEmptied checks a directory that has no models before the model is published to it. It fails
// with ErrEmptied if models of the model directory have been there, since the directory may be one
// in which a file system is not mounted. HDFS is not mounted, so there somebody has deleted the
// models, and it only warns. It fails with another error if the directory has files of something
// else.
func (o *publishing) checkEmptied(ctx context.Context, d *remote.Directory, sources *source.Sources, m *modeldir.Model) error {
	if begun, err := d.Begun(ctx); err != nil || begun {
		return err
	}
	knows := o.knownBy(m, placeOf(sources, d.URI()))
	if knows == "" {
		if err := checkParent(sources, d.URI()); err != nil {
			return err
		}
		if err := checkForeign(ctx, d); err != nil {
			return err
		}
		o.Logger.Info("the remote directory has no models yet; this one is the first", "remote", d.URI())
		return nil
	}
	path := MountedPath(sources, d.URI())
	if path == "" {
		o.Logger.Warn("the remote directory has lost the models that it had; this one is published as the first", "remote", d.URI(), "known_by", knows)
		return nil
	}
	return fmt.Errorf("remote directory %s: %w, as %s shows: mount its file system. If they were deleted on purpose, start it afresh: mkdir -p %s", d.URI(), ErrEmptied, filepath.Join(knows, ReportName), humanize.ShellWord(remote.Begin(path)))
}

// knownBy returns a model directory, that of m or of a model from which it was made, whose models
// were in the remote directory at the given place; "" if there is none.
func (o *publishing) knownBy(m *modeldir.Model, place string) string {
	knows := func(dir string) bool {
		r, err := readReport(dir)
		return err == nil && r.knows(place)
	}
	if knows(m.Dir) {
		return m.Dir
	}
	for k := range o.madeFrom(m) {
		if dir, _ := modeldir.SplitName(k.name); knows(dir) {
			return dir
		}
	}
	return ""
}

// knows reports whether models of the model directory were in the remote directory at the given
// place.
func (r Report) knows(place string) bool {
	return slices.Contains(r.Known, place) || r.Published != nil && placeOfPath(r.Remote) == place // an earlier version has not recorded it
}

// note records in a model directory that a remote directory has its models.
func note(dir, place string, o *Options) {
	err := UpdateReport(dir, func(r *Report) bool {
		if slices.Contains(r.Known, place) {
			return false
		}
		r.Known = append(r.Known, place)
		return true
	})
	if err != nil {
		o.Logger.Warn("the model directory could not record that a remote directory has its models; if that directory is not mounted at a later run, the run will not notice", "model_dir", dir, "remote", place, "error", err)
	}
}

// placeOf returns the name of a remote directory in reports: its path, if it is on a mounted file
// system.
func placeOf(sources *source.Sources, uri string) string {
	if path := MountedPath(sources, uri); path != "" {
		uri = path
	}
	return placeOfPath(uri)
}

func placeOfPath(uri string) string {
	return remote.Place(strings.TrimRight(source.Path(uri), "/"))
}
