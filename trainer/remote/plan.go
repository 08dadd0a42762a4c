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
	// Unique says that no other file ever had this name, and that the file only grows. So the part
	// of it that the remote directory already has is not read.
	Unique bool
	// Private says that only its owner may read the file, there and where it is fetched.
	Private bool
	Open    func() (ReaderAt, error)
}

// ReaderAt is an open Local.
type ReaderAt interface {
	io.ReaderAt
	io.Closer
}

// Publication describes a generation to be published.
type Publication struct {
	Job, Owner, Identity, AiboxVersion string

	Kind Kind
	Run  string // of a snapshot or priority save, as is Step
	Step int64

	Number int // its number, unless the directory has this number or a higher one
	// ParentIdentity is the Identity of the model from which it was made; "" if unknown.
	ParentIdentity string
	Model          json.RawMessage
	Files          []Local
	// Newest says that the model is to be the newest of its job, even if it is there already,
	// because the model directory has gone back to it. A model that another directory has published
	// since stays the newest, however.
	Newest bool
	// Night returns the night of a generation, for a job that has one model directory per night:
	// see ByNight. It is nil if the job has one for all nights.
	Night func(*Manifest) string
	// Verify says that all objects of the generation are read, and missing or damaged ones are
	// uploaded again.
	Verify bool
	Keep   int // how many generations of the job, or of this Kind of the run, to keep; less than 1 means 1
}

// plan decides what is uploaded. sources are the IDs of the manifests that have the objects which
// need no upload.
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
			sources[c.keptBy[part.Object]] = true
		}
	})
	return m, sources, nil
}

// sums computes the checksums of a file's parts from byte from on. The first parts have the sizes
// cuts, as long as the directory has them. Those after them are as large as parts may be.
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
		part, err := sumPart(ctx, l, f, at, n, buf)
		if err != nil {
			return nil, err
		}
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

// sumPart computes the checksum of n bytes of a file.
func sumPart(ctx context.Context, l *Local, f io.ReaderAt, at, n int64, buf []byte) (part Part, err error) {
	h := sha256.New()
	got, err := io.CopyBuffer(struct{ io.Writer }{h}, &contextReader{ctx, io.NewSectionReader(f, at, n)}, buf)
	if err == nil && got < n {
		err = fmt.Errorf("%s ends at byte %d of %d: %w", l.Name, at+got, l.Bytes, io.ErrUnexpectedEOF)
	}
	return Part{Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
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
// carried out. Its process was killed or is still going; in the latter case both have the same
// result.
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
		keptBy, usable := h.keptBy(), true
		f.objects(func(part *Part) {
			usable = usable && (idOf(part.Object) == f.ID || keptBy[part.Object] != "" && d.checkObject(part, sizes) == nil)
		})
		if usable {
			return f.Manifest, nil
		}
	}
	return nil, nil
}

// sameFiles reports whether a manifest has the files of a publication.
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
