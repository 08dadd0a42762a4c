package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"aibox/internal/errkind"
	"aibox/internal/panics"
	"aibox/reader/source"
)

// Published is the result of Publish.
type Published struct {
	URI           string  `json:"uri"` // of the generation
	Generation    int     `json:"generation"`
	Already       bool    `json:"already"` // it was there before
	Bytes         int64   `json:"bytes"`   // of all its files
	UploadedBytes int64   `json:"uploaded_bytes"`
	MendedBytes   int64   `json:"mended_bytes,omitempty"` // of files that were missing or damaged there, and were uploaded again
	DeletedBytes  int64   `json:"deleted_bytes"`          // of files that no manifest needs any more
	Seconds       float64 `json:"seconds"`
	// Earlier are the models of earlier nights that were published before this one, since the
	// directory did not have them.
	Earlier []*Published `json:"earlier,omitempty"`
}

// errAgain says that another process has changed something that the plan relied on.
var errAgain = errors.New("other processes keep changing the remote directory; try again later")

// errFreed says that there was no room, and that some was freed.
var errFreed = errors.New("other processes keep taking the space that is freed")

// attempts is how often a publication is started that others disturb.
const attempts = 10

// Publish makes a generation part of the directory, and then deletes what is no longer needed. If
// the directory has a complete generation with the same Identity, nothing is uploaded. If another
// generation is newer, and this one is to be the newest, it gets a new number. After an error, the
// generation is not there, or could not be verified; another call continues. It is no error if old
// generations cannot be deleted: that is logged, and the next publication tries again.
func (d *Directory) Publish(ctx context.Context, p Publication) (*Published, error) {
	begin := time.Now()
	for attempt := 1; ; attempt++ {
		out, err := d.publish(ctx, &p)
		last := attempt == attempts
		switch {
		case err == nil:
			out.Seconds = time.Since(begin).Seconds()
			return out, nil
		case errors.Is(err, errAgain) && !last:
			if away := d.checkThere(ctx, pendingDir); away != nil { // what was written there is gone with it
				err = away
				break
			}
			d.log.Info("another process has changed the remote directory; publishing starts again", "remote", d.uri)
			continue
		case errors.Is(err, errFreed) && !last:
			d.log.Info("there was no space left; files of the remote directory that nothing needs any more are deleted, and publishing continues", "remote", d.uri)
			continue
		case source.Full(err):
			err = fmt.Errorf("there is no space left: free some there, or raise the quota: %w", err)
		}
		return nil, fmt.Errorf("%s to %s: %w", p.doing(), d.uri, err)
	}
}

func (p *Publication) doing() string {
	switch p.Kind {
	case Snapshot:
		return "uploading a snapshot"
	case PrioritySave:
		return "uploading the rows of a priority save"
	}
	return "publishing the model"
}

func (d *Directory) publish(ctx context.Context, p *Publication) (*Published, error) {
	h, err := d.scan(ctx)
	if err != nil {
		return nil, err
	}
	sizes, err := d.sizes(ctx)
	if err != nil {
		return nil, err
	}
	for _, faults := range h.faults {
		for _, err := range faults {
			what := "a manifest of the remote directory cannot be read; until it is removed, no files are deleted there"
			if errors.Is(err, errkind.ErrNewer) {
				what = "a newer version of aibox uses the remote directory, too; this one deletes no files there"
			}
			d.log.Warn(what, "error", err)
		}
	}
	for _, f := range h.of[p.Kind].list {
		if f.Identity != p.Identity || f.Job != p.Job || h.superseded(f, p) {
			continue
		}
		out := d.report(f.Manifest)
		if sizes, err = d.repair(ctx, p, f.Manifest, out, sizes); err != nil {
			return nil, err
		}
		if d.checkObjects(f.Manifest, sizes) == nil {
			out.Already = true
			out.DeletedBytes = d.clean(ctx, p, f.Manifest)
			return out, nil
		}
	}
	m, err := d.continued(ctx, p, h, sizes)
	if err != nil {
		return nil, err
	}
	if m == nil {
		if m, err = d.begin(ctx, p, h, sizes); err != nil {
			return nil, err
		}
	}
	out := d.report(m)
	if out.UploadedBytes, err = d.upload(ctx, p, m, sizes); err != nil {
		if errors.Is(err, source.ErrNotFound) && d.removedByOther(ctx, m) {
			return nil, errors.Join(errAgain, err)
		}
		if freed := d.cleanFailed(ctx, p, m, h, err); freed > 0 && p.Kind == Generation {
			return nil, fmt.Errorf("%w: %w", errFreed, err)
		}
		return nil, err
	}
	if err := d.commit(ctx, m); err != nil {
		return nil, err
	}
	if sizes, err = d.repair(ctx, p, m, out, sizes); err == nil && p.Verify {
		err = d.checkObjects(m, sizes)
	}
	if err != nil {
		return nil, fmt.Errorf("the model is there, but could not be verified: %w", err)
	}
	out.DeletedBytes = d.clean(ctx, p, m)
	return out, nil
}

func (d *Directory) report(m *Manifest) *Published {
	return &Published{URI: fmt.Sprintf("%s@%d", d.uri, m.Number), Generation: m.Number, Bytes: m.Bytes()}
}

// begin plans the publication and writes its manifest as a pending one. From then on, nobody
// deletes the objects that it names, provided that the manifests from which it has taken existing
// objects still exist at that time.
func (d *Directory) begin(ctx context.Context, p *Publication, h *held, sizes map[string]int64) (*Manifest, error) {
	c := d.newCatalog(h, sizes)
	m, sources, err := d.plan(ctx, p, h, c)
	if err != nil {
		return nil, err
	}
	data, err := m.encode()
	if err != nil {
		return nil, err
	}
	if err := d.store.Put(ctx, m.pendingName(), bytes.NewReader(data), int64(len(data)), perm(false)); err != nil {
		return nil, err
	}
	now, err := d.scan(ctx)
	if err != nil {
		return nil, err
	}
	c.warnMissing(now)
	if slices.ContainsFunc(h.committed(), func(f *found) bool { return !now.has(f.ID) }) { // or they are away with everything else
		if err := d.checkThere(ctx, objectsDir); err != nil {
			return nil, errors.Join(err, d.store.Remove(ctx, m.pendingName()))
		}
	}
	for id := range sources {
		if !now.has(id) {
			return nil, errors.Join(errAgain, d.store.Remove(ctx, m.pendingName()))
		}
	}
	return m, nil
}

// removedByOther reports whether another process has removed a pending manifest, either because it considered
// the publishing process dead or because it publishes for the same model directory. That process
// then also removes the objects, including those being uploaded.
func (d *Directory) removedByOther(ctx context.Context, m *Manifest) bool {
	now, err := d.scan(ctx)
	return err == nil && !now.has(m.ID)
}

// commit makes the generation exist. If another process has removed the pending manifest, because
// it considered this one dead, the objects may be gone, too.
func (d *Directory) commit(ctx context.Context, m *Manifest) error {
	err := d.store.Rename(ctx, m.pendingName(), m.committedName())
	if !errors.Is(err, source.ErrNotFound) {
		return err
	}
	list, err := d.store.List(ctx, path.Dir(m.committedName()))
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name == path.Base(m.committedName()) {
			return nil // an earlier attempt to rename has succeeded
		}
	}
	return errAgain
}

// upload uploads the missing objects that belong to the publication itself.
func (d *Directory) upload(ctx context.Context, p *Publication, m *Manifest, sizes map[string]int64) (int64, error) {
	return d.uploadPieces(ctx, m.pieces(p.Files, func(part *Part) bool {
		return idOf(part.Object) == m.ID && d.checkObject(part, sizes) != nil
	}))
}

// piece is a part of a local file that is to become an object.
type piece struct {
	local  *Local
	part   *Part
	offset int64
}

// pieces returns the wanted parts of those files that are in locals, by name. Parts that are the
// same object are returned once.
func (m *Manifest) pieces(locals []Local, wanted func(*Part) bool) (out []piece) {
	here := make(map[string]*Local)
	for i := range locals {
		here[locals[i].Name] = &locals[i]
	}
	seen := make(map[string]bool)
	for i := range m.Files {
		local := here[m.Files[i].Name]
		if local == nil {
			continue
		}
		offset := int64(0)
		for j := range m.Files[i].Parts {
			part := &m.Files[i].Parts[j]
			if !seen[part.Object] && wanted(part) {
				seen[part.Object] = true
				out = append(out, piece{local, part, offset})
			}
			offset += part.Bytes
		}
	}
	return out
}

func (d *Directory) uploadPieces(ctx context.Context, todo []piece) (int64, error) {
	total := int64(0)
	for _, t := range todo {
		total += t.part.Bytes
	}
	var done atomic.Int64
	d.opts.Progress(0, total)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, t := range todo {
		g.Go(func() error {
			return panics.Do("publishing "+t.local.Name, func() error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := d.put(ctx, &t); err != nil {
					return err
				}
				d.opts.Progress(done.Add(t.part.Bytes), total)
				return nil
			})
		})
	}
	err := g.Wait()
	return done.Load(), err
}

// put uploads a part of a file.
func (d *Directory) put(ctx context.Context, t *piece) (err error) {
	l, part := t.local, t.part
	f, err := l.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	data := &watchedReaderAt{data: limitedReaderAt{ctx, d.limit, f}, offset: t.offset, bytes: part.Bytes, failed: func(err error) {
		cancel(fmt.Errorf("reading %s: %w", l.Name, err)) // no attempt can succeed
	}}
	return d.store.Put(ctx, path.Join(objectsDir, part.Object), data, part.Bytes, perm(l.Private))
}

// watchedReaderAt is a part of a file. It reports the first failure to read the file, which the
// store may mistake for a failure of its own.
type watchedReaderAt struct {
	data          limitedReaderAt
	offset, bytes int64
	once          sync.Once
	failed        func(error)
}

func (w *watchedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.data.ReadAt(p, w.offset+off)
	if err != nil && n < len(p) && off+int64(n) < w.bytes {
		w.once.Do(func() { w.failed(err) })
	}
	return n, err
}
