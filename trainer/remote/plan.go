package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Local is a file of a generation on this machine.
type Local struct {
	Name  string // in the manifest
	Bytes int64
	// Unique says that no other file ever had this name, and that it only grows. So what
	// the remote directory has of a file of this name is not read.
	Unique bool
	// Private says that nobody but its owner may read the file, there or where it is fetched.
	Private bool
	Open    func() (ReaderAt, error)
}

// ReaderAt is an open Local.
type ReaderAt interface {
	io.ReaderAt
	io.Closer
}

// Publication is a generation that is to be published.
type Publication struct {
	Job, Owner, Identity, AiboxVersion string

	Kind Kind
	Run  string // of what is no generation, as the next
	Step int64

	Number int // that it should have, unless the directory has such a number or a higher one
	// ParentIdentity is the Identity of the model from which it was made; "": not known.
	ParentIdentity string
	Model          json.RawMessage
	Files          []Local
	// Newest says that the model is to be the newest one of its job, also if it is there
	// already: the model directory has gone back to it. But a model that another directory
	// has published since stays the newest.
	Newest bool
	// Night says of which night a generation of the job is, for a job that has a model directory a
	// night: see ByNight. nil: the job has one for all nights.
	Night func(*Manifest) string
	Keep  int // how many generations of the job, or of this Kind of the run, stay; less than 1 means 1
}

// catalog knows which parts of files the directory has.
type catalog struct {
	d        *Directory
	sizes    map[string]int64
	vouchers map[string]string
	files    map[string][]*File // by name
	parts    map[partKey]Part
	faulty   map[string]bool // objects that were complained about
}

type partKey struct {
	sha256 string
	bytes  int64
}

// newCatalog knows the objects of all manifests that are there and whole.
func (d *Directory) newCatalog(h *held, sizes map[string]int64) *catalog {
	c := &catalog{d: d, sizes: sizes, vouchers: h.vouchers(), files: make(map[string][]*File), parts: make(map[partKey]Part), faulty: make(map[string]bool)}
	for _, f := range h.all() {
		for i := range f.Files {
			c.add(f, &f.Files[i])
		}
	}
	return c
}

// add adds a file of a manifest. Of pending ones, not all objects are there
// yet.
func (c *catalog) add(of *found, f *File) {
	whole := true
	for _, p := range f.Parts {
		err := c.d.lacksObject(&p, c.sizes)
		if err == nil && c.vouchers[p.Object] != "" {
			c.parts[partKey{p.SHA256, p.Bytes}] = p
			continue
		}
		whole = false
		if !of.pending && !c.faulty[p.Object] {
			c.faulty[p.Object] = true
			c.d.log.Warn("a file of an earlier publication is damaged; what the model needs of it is uploaded again", "error", err)
		}
	}
	if whole {
		c.files[f.Name] = append(c.files[f.Name], f)
	}
}

// begun returns the parts of a unique file that the directory has, from its first byte on, and
// how many bytes they are.
func (c *catalog) begun(l *Local) (parts []Part, bytes int64) {
	if !l.Unique {
		return nil, 0
	}
	for _, f := range c.files[l.Name] {
		if !f.Unique {
			continue
		}
		n, sum := 0, int64(0)
		for n < len(f.Parts) && sum+f.Parts[n].Bytes <= l.Bytes {
			sum += f.Parts[n].Bytes
			n++
		}
		if sum > bytes {
			parts, bytes = f.Parts[:n], sum
		}
	}
	return slices.Clone(parts), bytes
}

// maxGrown is how many parts a file has that is not unique and grows, as a report does. Then the
// last ones are uploaded again as one, as far as each is not longer than what follows it.
const maxGrown = 16

// cuts returns the sizes of the parts with which a file that is not unique may begin, because it has grown
// since the directory got them.
func (c *catalog) cuts(l *Local) (sizes []int64) {
	longest := int64(0)
	for _, f := range c.files[l.Name] {
		if l.Unique || f.Bytes > l.Bytes || f.Bytes <= longest {
			continue
		}
		longest, sizes = f.Bytes, sizes[:0]
		for _, p := range f.Parts {
			sizes = append(sizes, p.Bytes)
		}
	}
	if n := len(sizes); n >= maxGrown && longest < l.Bytes {
		for rest := l.Bytes - longest; n > 0 && sizes[n-1] <= rest; n-- {
			rest += sizes[n-1]
		}
		sizes = sizes[:n]
	}
	return sizes
}

func (c *catalog) has(p Part) bool {
	_, ok := c.parts[partKey{p.SHA256, p.Bytes}]
	return ok
}

// plan decides what is uploaded. sources are the ids of the manifests that have the objects which are not.
func (d *Directory) plan(ctx context.Context, p *Publication, h *held, c *catalog) (m *Manifest, sources map[string]bool, err error) {
	m = &Manifest{
		FormatVersion: FormatVersion, ID: newID(), Number: p.Number, AiboxVersion: p.AiboxVersion,
		PublishedAt: time.Now().UTC().Format(time.RFC3339), Job: p.Job, Owner: p.Owner, Identity: p.Identity, Model: p.Model,
		Snapshot: p.Kind == Snapshot, Priority: p.Kind == PrioritySave, Run: p.Run, Step: p.Step,
	}
	if last := h.of[p.Kind].last; m.Number <= last {
		m.Number = last + 1
	}
	if p.Kind == Generation {
		m.FormatVersion = plainVersion
	}
	for _, f := range h.of[Generation].list {
		if p.ParentIdentity != "" && f.Identity == p.ParentIdentity {
			m.Parent = &Parent{f.ID, f.Number}
		}
	}
	next := 0
	for _, l := range p.Files {
		begun, from := c.begun(&l)
		f := File{Name: l.Name, Bytes: l.Bytes, Unique: l.Unique, Private: l.Private, Parts: begun}
		sums, err := d.sums(ctx, &l, from, c.cuts(&l), c.has)
		if err != nil {
			return nil, nil, err
		}
		for _, part := range sums {
			if known, ok := c.parts[partKey{part.SHA256, part.Bytes}]; ok {
				part = known
			} else {
				next++
				part.Object = objectOf(m.ID, next)
				c.parts[partKey{part.SHA256, part.Bytes}] = part
			}
			f.Parts = append(f.Parts, part)
		}
		m.Files = append(m.Files, f)
	}
	sources = make(map[string]bool)
	m.objects(func(part *Part) {
		if idOf(part.Object) != m.ID {
			sources[c.vouchers[part.Object]] = true
		}
	})
	return m, sources, nil
}

// sums computes the checksums of a file's parts from a byte on. The first parts have the sizes
// cuts, as long as the directory has them, and those behind them are as large as parts may be.
func (d *Directory) sums(ctx context.Context, l *Local, from int64, cuts []int64, has func(Part) bool) (parts []Part, err error) {
	if l.Bytes == from {
		return nil, nil
	}
	f, err := l.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 1<<20)
	for at := from; at < l.Bytes; {
		n := min(d.opts.partBytes, l.Bytes-at)
		if len(cuts) > 0 {
			n = cuts[0]
		}
		sum := sha256.New()
		r := &contextReader{ctx, io.NewSectionReader(f, at, n)}
		got, err := io.CopyBuffer(struct{ io.Writer }{sum}, r, buf)
		if err == nil && got < n {
			err = fmt.Errorf("%s ends at byte %d of %d: %w", l.Name, at+got, l.Bytes, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, err
		}
		part := Part{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
		if len(cuts) > 0 {
			if cuts = cuts[1:]; !has(part) { // the file has changed from here on
				cuts = nil
				continue
			}
		}
		parts = append(parts, part)
		at += n
	}
	return parts, nil
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// continued returns the manifest of an earlier attempt to publish the same model, if it can be
// carried out: its process was killed, or goes on. Both come to the same end then.
func (d *Directory) continued(ctx context.Context, p *Publication, h *held, sizes map[string]int64) (*Manifest, error) {
	last := h.of[p.Kind].last
	for _, f := range h.pending {
		if f.Identity != p.Identity || f.Job != p.Job || f.Kind() != p.Kind || f.Number <= last || len(f.Files) != len(p.Files) {
			continue
		}
		if same, err := d.sameFiles(ctx, p, f.Manifest); err != nil || !same {
			if err != nil {
				return nil, err
			}
			continue
		}
		vouchers, usable := h.vouchers(), true
		f.objects(func(part *Part) {
			usable = usable && (idOf(part.Object) == f.ID || vouchers[part.Object] != "" && d.lacksObject(part, sizes) == nil)
		})
		if usable {
			return f.Manifest, nil
		}
	}
	return nil, nil
}

// sameFiles says whether a manifest has the files of a publication.
func (d *Directory) sameFiles(ctx context.Context, p *Publication, m *Manifest) (bool, error) {
	for i, l := range p.Files {
		f := &m.Files[i]
		if f.Name != l.Name || f.Bytes != l.Bytes || f.Unique != l.Unique {
			return false, nil
		}
		if l.Unique {
			continue
		}
		var cuts []int64
		for _, part := range f.Parts {
			cuts = append(cuts, part.Bytes)
		}
		sums, err := d.sums(ctx, &l, 0, cuts, func(p Part) bool {
			return slices.ContainsFunc(f.Parts, func(q Part) bool { return p.SHA256 == q.SHA256 })
		})
		if err != nil {
			return false, err
		}
		if !slices.EqualFunc(sums, f.Parts, func(a, b Part) bool { return a.SHA256 == b.SHA256 && a.Bytes == b.Bytes }) {
			return false, nil
		}
	}
	return true, nil
}
