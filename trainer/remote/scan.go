package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"aibox/internal/errkind"
	"aibox/reader/source"
)

// held is the contents of the directory.
type held struct {
	pending []*found
	of      [kinds]committed
	faults  map[string][]error // of manifests that cannot be read, by directory
}

// committed are the committed manifests of a Kind.
type committed struct {
	list []*found // in ascending order of number, then of ID
	last int      // the highest number, readable or not
}

// found is a manifest with the time of its file.
type found struct {
	*Manifest
	modTime time.Time
	pending bool
}

// name returns the name of its file.
func (f *found) name() string {
	if f.pending {
		return f.pendingName()
	}
	return f.committedName()
}

// all returns all manifests, including pending ones.
func (h *held) all() []*found { return slices.Concat(h.pending, h.committed()) }

// committed returns all committed manifests, by Kind.
func (h *held) committed() []*found {
	var all []*found
	for _, c := range h.of {
		all = append(all, c.list...)
	}
	return all
}

// manifests returns the committed manifests of the given kinds, one kind after the other, the
// newest first.
func (h *held) manifests(of ...Kind) (all []*Manifest) {
	for _, kind := range of {
		for _, f := range slices.Backward(h.of[kind].list) {
			all = append(all, f.Manifest)
		}
	}
	return all
}

// keptBy maps each object to the ID of a manifest. While that manifest exists, the object stays.
// A pending manifest keeps only what its own process uploads, since that process may not have
// checked yet whether its other objects stay.
func (h *held) keptBy() map[string]string {
	ids := make(map[string]string)
	for _, f := range h.all() {
		f.objects(func(p *Part) {
			if !f.pending || idOf(p.Object) == f.ID {
				ids[p.Object] = f.ID
			}
		})
	}
	return ids
}

// has reports whether there is a manifest with the given ID.
func (h *held) has(id string) bool {
	return slices.ContainsFunc(h.all(), func(f *found) bool { return f.ID == id })
}

// scanPatience is how long a manifest may be listed that does not exist: an NFS client caches names
// for a minute.
const scanPatience = time.Minute

// scan reads all manifests. It lists the pending ones first, so one that is committed meanwhile is
// among the committed ones.
func (d *Directory) scan(ctx context.Context) (*held, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		h, err := d.scanOnce(ctx)
		if !errors.Is(err, source.ErrNotFound) || pause > scanPatience {
			return h, err
		}
		// A manifest was committed or removed after it was listed.
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func (d *Directory) scanOnce(ctx context.Context) (*held, error) {
	pending, err := d.store.List(ctx, pendingDir)
	if err != nil {
		return nil, err
	}
	h := &held{faults: make(map[string][]error)}
	read := func(dir string, e source.Entry, id string) (*found, error) {
		m, err := d.readManifest(ctx, path.Join(dir, e.Name), e.Size)
		if err == nil && m.ID != id {
			err = &DamagedError{d.uri + "/" + path.Join(dir, e.Name), "it is the manifest of " + m.ID}
		}
		if errors.As(err, new(*DamagedError)) || errors.Is(err, errkind.ErrNewer) {
			h.faults[dir] = append(h.faults[dir], err)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return &found{m, e.ModTime, dir == pendingDir}, nil
	}
	for _, e := range pending {
		id, ok := strings.CutSuffix(e.Name, ".json")
		if !ok || !isID(id) {
			continue
		}
		f, err := read(pendingDir, e, id)
		if err != nil {
			return nil, err
		}
		if f != nil {
			h.pending = append(h.pending, f)
		}
	}
	for kind, dir := range kindDirs {
		entries, err := d.store.List(ctx, dir)
		if err != nil {
			return nil, err
		}
		c := &h.of[kind]
		for _, e := range entries {
			number, id := numberOf(e.Name)
			if number == 0 {
				continue
			}
			c.last = max(c.last, number)
			f, err := read(dir, e, id)
			if err != nil {
				return nil, err
			}
			if f != nil {
				c.list = append(c.list, f)
			}
		}
		slices.SortStableFunc(c.list, func(a, b *found) int { return a.Number - b.Number })
	}
	done := h.committed()
	h.pending = slices.DeleteFunc(h.pending, func(p *found) bool {
		return slices.ContainsFunc(done, func(c *found) bool { return c.ID == p.ID })
	})
	return h, nil
}

// readManifest reads a manifest. The error is a *DamagedError if the file can be read but is not a
// manifest, or a *NewerError.
func (d *Directory) readManifest(ctx context.Context, name string, size int64) (*Manifest, error) {
	if size > maxManifestBytes {
		return nil, &DamagedError{d.uri + "/" + name, fmt.Sprintf("it has %d bytes", size)}
	}
	r, err := d.store.Open(ctx, name, size, 0)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(r, size))
	if err := errors.Join(err, r.Close()); err != nil {
		var corrupt *source.CorruptError
		if errors.As(err, &corrupt) || errors.Is(err, source.ErrChanged) {
			return nil, &DamagedError{d.uri + "/" + name, err.Error()}
		}
		return nil, err
	}
	m, err := decode(b.Bytes())
	var newer *NewerError
	if errors.As(err, &newer) {
		newer.URI = d.uri + "/" + name
		newer.Number, _ = numberOf(path.Base(name))
		return nil, err
	}
	if err != nil {
		return nil, &DamagedError{d.uri + "/" + name, err.Error()}
	}
	return m, nil
}

// sizes returns the sizes of the objects by name, including leftovers of uploads.
func (d *Directory) sizes(ctx context.Context) (map[string]int64, error) {
	list, err := d.store.List(ctx, objectsDir)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(list))
	for _, e := range list {
		if !e.IsDir {
			sizes[e.Name] = e.Size
		}
	}
	return sizes, nil
}

// checkObjects returns an error for the first object of a generation that is missing or has the wrong
// size; nil if there is none.
func (d *Directory) checkObjects(m *Manifest, sizes map[string]int64) error {
	var err error
	m.objects(func(p *Part) {
		if err == nil {
			err = d.checkObject(p, sizes)
		}
	})
	return err
}

func (d *Directory) checkObject(p *Part, sizes map[string]int64) error {
	at := d.uri + "/" + path.Join(objectsDir, p.Object)
	switch size, ok := sizes[p.Object]; {
	case !ok:
		return &DamagedError{at, "it is missing"}
	case size != p.Bytes:
		return &DamagedError{at, fmt.Sprintf("it has %d bytes, but %d were published", size, p.Bytes)}
	}
	return nil
}
