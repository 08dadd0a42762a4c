package remote

import "slices"

// catalog knows which parts of files the directory has.
type catalog struct {
	d       *Directory
	sizes   map[string]int64
	keptBy  map[string]string
	files   map[string][]*File // by name
	parts   map[partKey]Part
	missing []missingObject // from committed manifests
}

// missingObject is a missing or damaged object of the manifest with the given ID.
type missingObject struct {
	id, object string
	err        error
}

type partKey struct {
	sha256 string
	bytes  int64
}

// newCatalog returns a catalog of all manifests that exist and are complete.
func (d *Directory) newCatalog(h *held, sizes map[string]int64) *catalog {
	c := &catalog{d: d, sizes: sizes, keptBy: h.keptBy(), files: make(map[string][]*File), parts: make(map[partKey]Part)}
	for _, f := range h.all() {
		for i := range f.Files {
			c.add(f, &f.Files[i])
		}
	}
	return c
}

// add adds a file of a manifest. Pending manifests do not have all objects yet.
func (c *catalog) add(of *found, f *File) {
	whole := true
	for _, p := range f.Parts {
		err := c.d.checkObject(&p, c.sizes)
		if err == nil && c.keptBy[p.Object] != "" {
			c.parts[partKey{p.SHA256, p.Bytes}] = p
			continue
		}
		whole = false
		if !of.pending {
			c.missing = append(c.missing, missingObject{of.ID, p.Object, err})
		}
	}
	if whole {
		c.files[f.Name] = append(c.files[f.Name], f)
	}
}

// warnMissing logs the objects that manifests miss. now are the manifests that existed after the
// objects had been listed: another process may have removed a manifest with its objects before
// that.
func (c *catalog) warnMissing(now *held) {
	said := make(map[string]bool)
	for _, l := range c.missing {
		if !said[l.object] && now.has(l.id) {
			said[l.object] = true
			c.d.log.Warn("a file of an earlier publication is damaged; what the model needs of it is uploaded again", "error", l.err)
		}
	}
}

// begun returns the parts of a unique file that the directory has, from the first byte on, and
// their size.
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

// maxGrown is how many parts a growing file that is not unique, such as a report, may have. Beyond
// that, the last parts, as long as each is no longer than what follows it, are uploaded again as
// one.
const maxGrown = 16

// cuts returns the sizes of the parts with which a file that is not unique may begin, if it has
// grown since it was uploaded.
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
