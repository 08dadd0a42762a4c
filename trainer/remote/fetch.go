package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"aibox/internal/directfile"
	"aibox/internal/diskfault"
	"aibox/internal/panics"
	"aibox/reader/source"
)

// Fetched is the result of Fetch.
type Fetched struct {
	Bytes   int64   `json:"bytes"`         // of all files
	Moved   int64   `json:"fetched_bytes"` // those that were not there yet
	Seconds float64 `json:"seconds"`       // duration of Fetch
	Again   int     `json:"fetched_again"` // parts that were damaged or missing at first
	Older   int     `json:"damaged_newer"` // newer generations that could not be used
	From    string  `json:"from"`          // the generation, as URI@N
	// Dropped are the damaged files that a model can do without.
	Dropped []string `json:"dropped,omitempty"`
}

// fetchAttempts is how often a part that does not match its checksum is fetched: the damage may
// have happened on the way and not at the source.
const fetchAttempts = 3

// PartSuffix ends the names of files that are being fetched.
const PartSuffix = ".part"

// Whole fails if files that a generation needs are incomplete according to a listing. The error is
// a *DamagedError, unless all objects are gone with their subdirectory.
func (d *Directory) Whole(ctx context.Context, m *Manifest) error {
	sizes, err := d.sizes(ctx)
	if err != nil {
		return err
	}
	needed := Manifest{Files: slices.DeleteFunc(slices.Clone(m.Files), func(f File) bool { return d.optional(m, &f) })}
	incomplete := d.checkObjects(&needed, sizes)
	if incomplete == nil {
		return nil
	}
	return cmp.Or(d.checkThere(ctx, objectsDir), incomplete)
}

// optional reports whether a model can do without a file. A snapshot needs all of its files.
func (d *Directory) optional(m *Manifest, f *File) bool {
	return m.Kind() == Generation && d.opts.Optional(f.Name)
}

// Fetch brings the files of a generation to the paths that place returns, whose directories must
// exist. It verifies every byte. A file appears under its path when it is complete and durable,
// except for its name: the caller must sync the directory. A file that exists already was fetched
// by an earlier call that was interrupted. If a file was begun, its parts are verified and not
// fetched again. The error is a *DamagedError if a file differs from what was published, however
// often it is fetched. If a model can do without such a file, it is dropped with a warning. It is no
// *DamagedError if all objects are gone with their subdirectory, since the directory may be away.
func (d *Directory) Fetch(ctx context.Context, m *Manifest, place func(*File) string) (*Fetched, error) {
	begin := time.Now()
	fe := &fetching{d: d, m: m, total: m.Bytes(), moving: make(chan struct{}, parallel)}
	d.opts.Progress(0, fe.total)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range m.Files {
		f := &m.Files[i]
		g.Go(func() error {
			return panics.Do("fetching "+f.Name, func() error { return fe.fileOrDrop(gctx, f, place(f)) })
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("fetching generation %d from %s: %w", m.Number, d.uri, err)
	}
	slices.Sort(fe.dropped)
	return &Fetched{
		Dropped: fe.dropped,
		Bytes:   fe.total, Moved: fe.moved.Load(), Again: int(fe.again.Load()),
		Seconds: time.Since(begin).Seconds(), From: fmt.Sprintf("%s@%d", d.uri, m.Number),
	}, nil
}

// fetching is one call of Fetch.
type fetching struct {
	d                  *Directory
	m                  *Manifest
	total              int64
	done, moved, again atomic.Int64
	moving             chan struct{} // slots for the parts that are moved, of all files

	mu      sync.Mutex // guards dropped
	dropped []string
}

func (fe *fetching) progress(n int64) { fe.d.opts.Progress(fe.done.Add(n), fe.total) }

// fileOrDrop fetches a file. It drops the file if it is damaged and optional.
func (fe *fetching) fileOrDrop(ctx context.Context, f *File, to string) error {
	err := fe.file(ctx, f, to)
	var damaged *DamagedError
	if !errors.As(err, &damaged) || !fe.d.optional(fe.m, f) {
		return err
	}
	if err := os.Remove(to + PartSuffix); err != nil {
		return err
	}
	fe.d.log.Warn("a file of the remote directory is damaged; the model does not need it, and is restored without it", "file", f.Name, "error", err)
	fe.mu.Lock()
	defer fe.mu.Unlock()
	fe.dropped = append(fe.dropped, f.Name)
	return nil
}

func (fe *fetching) file(ctx context.Context, f *File, to string) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if info, err := os.Stat(to); err == nil && info.Size() == f.Bytes {
		fe.progress(f.Bytes)
		return nil
	}
	out, err := directfile.Open(to+PartSuffix, os.O_RDWR|os.O_CREATE, perm(f.Private))
	if err != nil {
		return err
	}
	defer func() {
		if out != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	if err := fe.parts(ctx, f, out); err != nil {
		return err
	}
	if err := errors.Join(out.Truncate(f.Bytes), out.Sync()); err != nil {
		return err
	}
	err = out.Close()
	out = nil
	if err != nil {
		return err
	}
	return os.Rename(to+PartSuffix, to)
}

// parts fetches the missing parts of a file, several at a time.
func (fe *fetching) parts(ctx context.Context, f *File, out *directfile.File) error {
	info, err := out.Stat()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	offset := int64(0)
	for i := range f.Parts {
		p, at := &f.Parts[i], offset
		offset += p.Bytes
		begun := info.Size() >= offset // by an earlier call; a later part may have made the file longer
		g.Go(func() error {
			return panics.Do("fetching "+f.Name, func() error { return fe.onePart(ctx, f, p, out, at, begun) })
		})
	}
	return g.Wait()
}

func (fe *fetching) onePart(ctx context.Context, f *File, p *Part, out *directfile.File, offset int64, begun bool) error {
	select {
	case fe.moving <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-fe.moving }()
	if !begun || !hasPart(out.File, offset, p) {
		if err := fe.part(ctx, f, p, out, offset); err != nil {
			return err
		}
		fe.moved.Add(p.Bytes)
	}
	fe.progress(p.Bytes)
	return nil
}

// hasPart reports whether a file that was begun earlier has a complete part.
func hasPart(out *os.File, offset int64, p *Part) bool {
	info, err := out.Stat()
	if err != nil || info.Size() < offset+p.Bytes || diskfault.At("read", out.Name()) != nil {
		return false
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(out, offset, p.Bytes))
	return err == nil && n == p.Bytes && hex.EncodeToString(sum.Sum(nil)) == p.SHA256
}

// Reuse uses the file at path from, if it begins with the bytes of f, for the file at path to, so
// that Fetch need not fetch it: it links the file, or copies the bytes to the file that Fetch then
// completes. It reports whether it did. Afterwards both paths may be the same file.
func Reuse(ctx context.Context, f *File, from, to string) (ok bool, err error) {
	have, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer have.Close() // it was only read
	info, err := have.Stat()
	if err != nil || info.Size() < f.Bytes {
		return false, err
	}
	offset := int64(0)
	for i := range f.Parts {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if !hasPart(have, offset, &f.Parts[i]) {
			return false, nil
		}
		offset += f.Parts[i].Bytes
	}
	if info.Size() == f.Bytes {
		err := os.Link(from, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err == nil, nil
		}
	}
	out, err := os.Create(to + PartSuffix) // Fetch completes it
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, io.NewSectionReader(have, 0, f.Bytes))
	return err == nil, errors.Join(err, out.Close())
}

// part fetches a part of a file, again if it does not match its checksum.
func (fe *fetching) part(ctx context.Context, f *File, p *Part, out *directfile.File, offset int64) error {
	return fe.d.attempts(f.Name, func() error { return fe.fetch(ctx, p, out, offset) }, func() { fe.again.Add(1) })
}

// attempts calls fetch for something of a file, again if that is damaged. It calls failed before
// each further attempt.
func (d *Directory) attempts(file string, fetch func() error, failed func()) error {
	for attempt := 1; ; attempt++ {
		err := fetch()
		var damaged *DamagedError
		if !errors.As(err, &damaged) || attempt == fetchAttempts {
			return err
		}
		d.log.Warn("a file of the remote directory is damaged; it is fetched again", "file", file, "attempt", attempt, "error", err)
		failed()
	}
}

// fetch makes one attempt. If it fails, what it has written may be wrong.
func (fe *fetching) fetch(ctx context.Context, p *Part, out *directfile.File, offset int64) error {
	return fe.d.readObject(ctx, p, func(b []byte) error {
		_, err := out.WriteAt(b, offset)
		offset += int64(len(b))
		return err
	})
}

// readObject reads a whole object, passes its contents to have, and fails if they are not what was
// published. If have writes to a file at the offset of the object, whole blocks bypass the page
// cache.
func (d *Directory) readObject(ctx context.Context, p *Part, have func([]byte) error) error {
	r, err := d.openObject(ctx, p, 0)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = readBlocks(&limitedReader{ctx, d.limit, r}, p.Bytes, func(b []byte) error {
		sum.Write(b)
		return have(b)
	})
	if err = errors.Join(err, r.Close()); err != nil {
		return d.damage(ctx, p, err)
	}
	return d.matches(p, sum)
}

func (d *Directory) objectURI(p *Part) string { return d.uri + "/" + path.Join(objectsDir, p.Object) }

// openObject opens an object at an offset.
func (d *Directory) openObject(ctx context.Context, p *Part, offset int64) (io.ReadCloser, error) {
	r, err := d.store.Open(ctx, path.Join(objectsDir, p.Object), p.Bytes, offset)
	return r, d.damage(ctx, p, err)
}

// matches fails if the checksum of what was fetched is not that of the object.
func (d *Directory) matches(p *Part, sum hash.Hash) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return &DamagedError{d.objectURI(p), fmt.Sprintf("its SHA-256 is %s, but %s was published", got, p.SHA256)}
	}
	return nil
}

// copyBytes is how much is read, added to the checksum and written at a time.
const copyBytes = 4 << 20

// readBlocks passes the contents of r, about size bytes, to have in large pieces.
func readBlocks(r io.Reader, size int64, have func([]byte) error) error {
	buf := directfile.Memory(int(min(size+1, copyBytes))) // one more byte finds the end
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := have(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// damage turns an error about an object that is missing, or has the wrong bytes, into a
// *DamagedError. A store may notice a deletion only while it reads the object. If all objects are
// gone with their subdirectory, the error is that of checkThere.
func (d *Directory) damage(ctx context.Context, p *Part, err error) error {
	var corrupt *source.CorruptError
	switch {
	case errors.Is(err, source.ErrNotFound):
		if away := d.checkThere(ctx, objectsDir); away != nil {
			return away
		}
		return &DamagedError{d.objectURI(p), "it is missing"}
	case errors.Is(err, source.ErrChanged) || errors.As(err, &corrupt):
		return &DamagedError{d.objectURI(p), err.Error()}
	}
	return err
}
