package remote

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"aibox/reader/source"
)

// clean deletes the job's generations that are not kept, leftovers of killed publications, and
// objects that no manifest names any more. It returns how many bytes that freed. Failures, and
// taking too long, are logged; the next publication tries again. It is no failure if the caller
// cancels.
func (d *Directory) clean(caller context.Context, p *Publication, made *Manifest) int64 {
	ctx, cancel := context.WithTimeoutCause(caller, d.opts.cleanWithin, fmt.Errorf("deleting them took longer than %v", d.opts.cleanWithin))
	defer cancel()
	freed, err := d.removeOld(ctx, p, made)
	if err != nil && caller.Err() == nil {
		d.log.Warn(p.doing()+" is done, but old files of the remote directory could not be deleted; the next publication tries again", "remote", d.uri, "error", err)
	}
	return freed
}

func (d *Directory) removeOld(ctx context.Context, p *Publication, made *Manifest) (freed int64, err error) {
	h, err := d.scan(ctx)
	if err != nil {
		return 0, err
	}
	stay := h.stay(p, made)
	for _, f := range slices.Backward(h.of[p.Kind].list) {
		if f.Job != p.Job || stay[f.ID] || p.Kind != Generation && f.Run != p.Run && d.mayBeUsed(f, p) {
			continue
		}
		if err := d.store.Remove(ctx, f.committedName()); err != nil {
			return 0, err
		}
		if p.Kind == Generation {
			d.log.Info("an old generation of the remote directory is deleted", "remote", d.uri, "generation", f.Number, "job", f.Job)
		}
	}
	if p.Kind == Snapshot {
		for _, f := range h.of[PrioritySave].list {
			if f.Job != p.Job || f.Run == p.Run && f.Step > p.Step || f.Run != p.Run && d.mayBeUsed(f, p) {
				continue
			}
			if err := d.store.Remove(ctx, f.committedName()); err != nil {
				return 0, err
			}
		}
	}
	for _, f := range h.pending {
		if f.ID == made.ID || !p.owns(f) && time.Since(f.modTime) < d.opts.abandonedAfter {
			continue
		}
		if err := d.store.Remove(ctx, f.pendingName()); err != nil {
			return 0, err
		}
		d.log.Info("the leftovers of a publication that was killed are deleted", "remote", d.uri, "job", f.Job, "owner", f.Owner, "begun", f.PublishedAt)
	}
	return d.removeGarbage(ctx)
}

// owns reports whether a manifest is from the same model directory and of the same kind as p.
func (p *Publication) owns(f *found) bool {
	return f.Owner == p.Owner && f.Job == p.Job && f.Kind() == p.Kind
}

// cleanFailed deletes what nobody needs any more after a failed upload, and returns how many bytes
// that freed. After a snapshot, these are parts of earlier snapshots that could not be uploaded
// either: otherwise they would fill up a full directory. A model that finds no room also takes that
// of such parts, and of objects that no manifest names, such as those of snapshots that somebody
// has deleted to make room. Parts of models are kept, since each of them is to be published.
func (d *Directory) cleanFailed(ctx context.Context, p *Publication, pending *Manifest, h *held, why error) (freed int64) {
	var parts []*found
	for _, f := range h.pending {
		if f.Owner == p.Owner && f.Job == p.Job && f.ID != pending.ID && f.Kind() != Generation && (p.Kind == Generation || f.Kind() == p.Kind) {
			parts = append(parts, f)
		}
	}
	if p.Kind == Generation && !source.Full(why) || p.Kind != Generation && len(parts) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.cleanWithin, fmt.Errorf("deleting them took longer than %v", d.opts.cleanWithin))
	defer cancel()
	var err error
	for _, f := range parts {
		err = errors.Join(err, d.store.Remove(ctx, f.pendingName()))
	}
	if err == nil {
		freed, err = d.removeGarbage(ctx)
	}
	if err != nil {
		d.log.Debug("leftovers of failed uploads could not be deleted; the next upload tries again", "remote", d.uri, "error", err)
	}
	return freed
}

// mayBeUsed reports whether a run other than that of the publication may resume from f.
func (d *Directory) mayBeUsed(f *found, p *Publication) bool {
	return f.Owner != p.Owner && time.Since(f.modTime) < d.opts.abandonedAfter
}

// removeGarbage deletes the objects that no manifest names. It lists the objects first: an object
// that was uploaded by then is named by a manifest written before it, which still exists, pending
// or committed, unless somebody has removed it. It reads the manifests twice: while they are read,
// an object may pass from a manifest that is then removed to one that was not pending yet.
func (d *Directory) removeGarbage(ctx context.Context) (freed int64, err error) {
	sizes, err := d.sizes(ctx)
	if err != nil {
		return 0, err
	}
	named := make(map[string]bool)
	live := make(map[string]bool) // IDs of publications under way
	for range 2 {
		h, err := d.scan(ctx)
		if err != nil || len(h.faults) > 0 {
			return 0, err // a manifest that cannot be read may name any of them
		}
		for _, f := range h.all() {
			f.objects(func(p *Part) { named[p.Object] = true })
		}
		for _, f := range h.pending {
			live[f.ID] = true
		}
	}
	for object, size := range sizes {
		id := idOf(object)
		if id == "" || named[object] || objectName.FindString(object) == "" && live[id] {
			continue
		}
		if err := d.store.Remove(ctx, path.Join(objectsDir, object)); err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

// RemoveSnapshots deletes the unneeded snapshots and priority saves of a job and their uploaded
// parts. It also deletes what a process that was killed in the same function has left. It returns
// how many bytes that freed.
func (d *Directory) RemoveSnapshots(ctx context.Context, job string, unneeded func(*Manifest) bool) (freed int64, err error) {
	h, err := d.scan(ctx)
	if err != nil {
		return 0, err
	}
	for _, f := range h.all() {
		if f.Kind() == Generation || f.Job != job || !unneeded(f.Manifest) {
			continue
		}
		if err := d.store.Remove(ctx, f.name()); err != nil {
			return 0, err
		}
	}
	return d.removeGarbage(ctx)
}
