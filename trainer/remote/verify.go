package remote

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"aibox/internal/panics"
)

// Verified is the result of Verify.
type Verified struct {
	All     []*Manifest // of the directory, as Directory.All returns them
	Objects int         // number of objects that were read or are missing
	Bytes   int64       // their size
	Faults  []Fault     // of objects
	// Manifests are the faults of manifests that cannot be read, so that it is unknown what they
	// describe.
	Manifests []error
}

// Fault is an object that differs from what was published.
type Fault struct {
	URI string
	Err error // a *DamagedError, or another error if it cannot be read at present, which may be the store's fault
	Of  []Use
}

// Use is a file that needs an object.
type Use struct {
	*Manifest
	File string
}

// Verify reads every object of the directory or, if number is not 0, of that generation. It reads
// objects that several manifests share only once. It takes no lock, and does not report what is
// published or deleted meanwhile as a fault.
func (d *Directory) Verify(ctx context.Context, number int) (*Verified, error) {
	v, err := d.verify(ctx, number)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("verifying the remote directory %s: %w", d.uri, err)
	}
	return v, nil
}

func (d *Directory) verify(ctx context.Context, number int) (*Verified, error) {
	h, err := d.scan(ctx)
	if err != nil {
		return nil, err
	}
	v := &Verified{All: h.manifests(Generation, Snapshot, PrioritySave)}
	chosen := slices.DeleteFunc(slices.Clone(v.All), func(m *Manifest) bool {
		return number != 0 && (m.Kind() != Generation || m.Number != number)
	})
	for _, dir := range append(kindDirs[:], pendingDir) {
		for _, err := range h.faults[dir] {
			if number == 0 || dir == generationsDir && numberOfFault(err) == number {
				v.Manifests = append(v.Manifests, err)
			}
		}
	}
	if number != 0 && len(chosen) == 0 && len(v.Manifests) == 0 {
		return nil, fmt.Errorf("%w: it has no generation %d", ErrNone, number)
	}
	objects := objectsOf(chosen)
	v.Objects = len(objects)
	for _, p := range objects {
		v.Bytes += p.Bytes
	}
	bad, err := d.faulty(ctx, objects)
	if err != nil || len(bad) == 0 {
		return v, err
	}
	if h, err = d.scan(ctx); err != nil { // another process may have deleted manifests with their objects
		return nil, err
	}
	before := len(v.All)
	v.All = slices.DeleteFunc(v.All, func(m *Manifest) bool { return !h.has(m.ID) })
	if len(v.All) < before { // or they are away with everything else
		if err := d.checkThere(ctx, objectsDir); err != nil {
			return nil, err
		}
	}
	v.Faults = d.faultsOf(v.All, bad)
	return v, nil
}

// faultsOf returns the bad objects with the files that need them.
func (d *Directory) faultsOf(all []*Manifest, bad map[string]error) (faults []Fault) {
	uses := make(map[string][]Use)
	for _, m := range all {
		for i := range m.Files {
			for _, p := range m.Files[i].Parts {
				uses[p.Object] = append(uses[p.Object], Use{m, m.Files[i].Name})
			}
		}
	}
	for _, p := range objectsOf(all) {
		if err := bad[p.Object]; err != nil {
			faults = append(faults, Fault{d.objectURI(p), err, uses[p.Object]})
		}
	}
	return faults
}

// numberOfFault returns the number of a manifest that cannot be read, from its name.
func numberOfFault(err error) int {
	var damaged *DamagedError
	var newer *NewerError
	switch {
	case errors.As(err, &newer):
		return newer.Number
	case errors.As(err, &damaged):
		number, _ := numberOf(path.Base(damaged.URI))
		return number
	}
	return 0
}

// objectsOf returns the objects of manifests, each once.
func objectsOf(all []*Manifest) (objects []*Part) {
	seen := make(map[string]bool)
	for _, m := range all {
		m.objects(func(p *Part) {
			if !seen[p.Object] {
				seen[p.Object] = true
				objects = append(objects, p)
			}
		})
	}
	return objects
}

// maxUnread is the number of consecutive objects that cannot be read after which the store counts
// as unavailable. HDFS is tried for a minute before an object counts as unreadable.
const maxUnread = 2 * parallel

// faulty reads objects. It returns by name what is wrong with those that are missing, differ from
// what was published, or cannot be read (the blocks of a file may be lost). An error says that no
// object can be read at present, or that all of them are gone with their subdirectory.
func (d *Directory) faulty(ctx context.Context, objects []*Part) (map[string]error, error) {
	bad := make(map[string]error)
	if len(objects) == 0 {
		return bad, nil
	}
	sizes, err := d.sizes(ctx)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, p := range objects {
		total += p.Bytes
	}
	var mu sync.Mutex
	var done, unread atomic.Int64
	d.opts.Progress(0, total)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range objects {
		g.Go(func() error {
			return panics.Do("verifying "+p.Object, func() error {
				err := d.verifyObject(ctx, p, sizes)
				d.opts.Progress(done.Add(p.Bytes), total)
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case errors.Is(err, errAway):
					return err
				case err == nil || errors.As(err, new(*DamagedError)):
					unread.Store(0)
				case unread.Add(1) == maxUnread:
					return fmt.Errorf("%d files in a row cannot be read: %w", maxUnread, err)
				default:
					d.log.Warn("a file of the remote directory cannot be read", "error", err)
				}
				if err != nil {
					mu.Lock()
					bad[p.Object] = err
					mu.Unlock()
				}
				return nil
			})
		})
	}
	return bad, g.Wait()
}

// verifyObject verifies one object. An object that is not listed may exist all the same, since NFS
// clients cache names.
func (d *Directory) verifyObject(ctx context.Context, p *Part, sizes map[string]int64) error {
	read := func() error { return d.readObject(ctx, p, func([]byte) error { return nil }) }
	if _, listed := sizes[p.Object]; !listed {
		return read()
	}
	if err := d.checkObject(p, sizes); err != nil {
		return err
	}
	return d.attempts(path.Join(objectsDir, p.Object), read, func() {})
}
