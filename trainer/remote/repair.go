package remote

import (
	"context"
	"errors"
	"maps"
)

// repair, if p asks for it, verifies the objects of m, a generation that equals that of the
// publication, and uploads missing or damaged ones again, in place. An object is identified by its
// checksum, so nothing else can get there, and all manifests that share it are repaired. The
// returned sizes leave out objects that it could not repair, because the publication does not have
// those bytes.
func (d *Directory) repair(ctx context.Context, p *Publication, m *Manifest, out *Published, sizes map[string]int64) (map[string]int64, error) {
	if !p.Verify {
		return sizes, nil
	}
	bad, err := d.faulty(ctx, objectsOf([]*Manifest{m}))
	if err != nil {
		return nil, err
	}
	if len(bad) > 0 && d.removedByOther(ctx, m) {
		return nil, errAgain
	}
	todo, err := d.havePieces(ctx, m.pieces(p.Files, func(part *Part) bool { return bad[part.Object] != nil }))
	if err != nil {
		return nil, err
	}
	var repaired []*Part
	for _, t := range todo {
		d.log.Warn("a part of a file is missing or damaged in the remote directory; it is uploaded again", "file", t.local.Name, "error", bad[t.part.Object])
		repaired = append(repaired, t.part)
		delete(bad, t.part.Object)
	}
	n, err := d.uploadPieces(ctx, todo)
	if out.MendedBytes += n; err != nil {
		return nil, err
	}
	still, err := d.faulty(ctx, repaired)
	if err != nil {
		return nil, err
	}
	maps.Copy(bad, still)
	if sizes, err = d.sizes(ctx); err != nil {
		return nil, err
	}
	for object, err := range bad {
		d.log.Warn("a file of the remote directory is damaged, and could not be repaired", "error", err)
		delete(sizes, object)
	}
	return sizes, nil
}

// havePieces returns the pieces whose bytes this machine has.
func (d *Directory) havePieces(ctx context.Context, all []piece) (have []piece, err error) {
	buf := make([]byte, 1<<20)
	for _, t := range all {
		if t.offset+t.part.Bytes > t.local.Bytes {
			continue
		}
		f, err := t.local.Open()
		if err != nil {
			return nil, err
		}
		got, err := sumPart(ctx, t.local, f, t.offset, t.part.Bytes, buf)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if got.SHA256 == t.part.SHA256 {
			have = append(have, t)
		}
	}
	return have, nil
}
