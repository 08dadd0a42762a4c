package transfer

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"aibox/internal/disk"
	"aibox/trainer/modeldir"
	"aibox/trainer/modelfiles"
	"aibox/trainer/remote"
)

// FetchResult is the result of FetchFiles.
type FetchResult struct {
	remote.Fetched
	Kept  int64 // bytes that were already on this machine
	Later int64 // bytes that were announced
}

// FetchFiles brings the files of a generation, or of a snapshot of a run, to the places that r, which
// has begun to restore it, has for them. remaining are files, by their names in m, that need not be
// fetched if they have the right bytes. So are files in r of a newer generation that was withdrawn.
// With late, missing bucket files of the table are not fetched but announced: see OpenArriving.
// FetchFiles commits nothing. If it fails, another call continues.
func FetchFiles(ctx context.Context, d *remote.Directory, m *remote.Manifest, r *modeldir.Restoring, remaining map[string]string, late bool, log *slog.Logger) (b FetchResult, err error) {
	names, sizes := files(m)
	left := r.Discarded()
	maps.Copy(left, remaining)
	if err := r.Place(names, sizes, left); err != nil {
		return b, err
	}
	if b.Kept, err = reuseLocal(ctx, m, left, r.Path, log); err != nil {
		return b, err
	}
	if err := r.RemoveDiscarded(); err != nil { // before fetched files take space
		return b, err
	}
	place := func(f *remote.File) string { return r.Path(f.Name) }
	first := m
	if late {
		first, err = announceBuckets(d, m, place, r.ArrivingRecords())
	} else {
		err = remote.Unannounce(m, place, r.ArrivingRecords()...) // an earlier process may have announced them
	}
	if err != nil {
		return b, err
	}
	fetched, err := d.Fetch(ctx, first, place)
	if err != nil {
		return b, err
	}
	b.Fetched, b.Later = *fetched, m.Bytes()-first.Bytes()
	return b, nil
}

// DirsFor returns to which of dirs, those of sparse_table.dirs, the table of m is brought.
func DirsFor(m *remote.Manifest, dirs []string) []string {
	names, _ := files(m)
	return modeldir.DirsFor(names, dirs)
}

func files(m *remote.Manifest) (names []string, sizes []int64) {
	for _, f := range m.Files {
		names, sizes = append(names, f.Name), append(sizes, f.Bytes)
	}
	return names, sizes
}

// reuseLocal puts files of this machine into the places to which those of a generation are fetched, if
// they have the same bytes, and returns the number of these bytes.
func reuseLocal(ctx context.Context, m *remote.Manifest, remaining map[string]string, place func(name string) string, log *slog.Logger) (bytes int64, err error) {
	for i := range m.Files {
		f := &m.Files[i]
		at := remaining[f.Name]
		if at == "" {
			continue
		}
		ok, err := remote.Reuse(ctx, f, at, place(f.Name))
		switch {
		case err != nil && ctx.Err() != nil:
			return bytes, context.Cause(ctx)
		case err != nil:
			log.Warn("a remaining file of the table cannot be used; it is fetched", "file", at, "error", err)
		case ok:
			bytes += f.Bytes
		}
	}
	return bytes, nil
}

// announceBuckets announces the bucket files of a model or snapshot that are not yet being fetched,
// and returns a manifest of all other files.
func announceBuckets(d *remote.Directory, m *remote.Manifest, place func(*remote.File) string, records []string) (*remote.Manifest, error) {
	late := func(f *remote.File) bool { return IsBucketFile(f) && !disk.Exists(place(f)+remote.PartSuffix) }
	first := *m
	first.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f remote.File) bool { return late(&f) })
	return &first, d.Announce(m, late, place, records...)
}

// IsBucketFile reports whether a file of a generation or snapshot can be fetched while it is used.
func IsBucketFile(f *remote.File) bool {
	return f.Unique && strings.HasPrefix(f.Name, modelfiles.TableFiles) && strings.HasSuffix(f.Name, ".bucket")
}

// RecordsOf returns the records in a model directory for a generation or snapshot of a remote
// directory, and the directories that have its files: a run that has started from a model has links
// to them.
func RecordsOf(dir, id string) (records, places []string) {
	for _, t := range modeldir.Arriving(dir) {
		if said, err := remote.AnnouncedIn(t.Records...); err == nil && said != nil && said.Manifest.ID == id {
			records, places = append(records, t.Records...), slices.Concat(places, t.Dirs)
		}
	}
	return records, places
}

// OpenArriving opens files in the directories places that miss bytes according to records. The
// resulting remote.Arriving fetches these.
func OpenArriving(d *remote.Directory, records, places []string) (*remote.Arriving, error) {
	t := modeldir.ArrivingTable{Dirs: places}
	return d.OpenArriving(records, t.Find)
}
