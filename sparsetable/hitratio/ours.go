package hitratio

import (
	"errors"
	"fmt"

	"aibox/sparsetable/internal/rowcache"
)

// ours returns the policies of rowcache, with ideal and hard budgets.
func ours(c config) (list []policyRun) {
	add := func(name, policy string, window int, hard bool) {
		list = append(list, policyRun{name, func(t *trace, rows int, bytes int64) (int64, int, error) {
			return runRowcache(t, c, policy, window, rows, bytes, hard)
		}})
	}
	for _, hard := range []bool{false, true} {
		kind := " (ideal)"
		if hard {
			kind = " (hard)"
		}
		for _, policy := range rowcache.Policies() {
			if policy != rowcache.Lookahead {
				add(policy+kind, policy, 0, hard)
				continue
			}
			for _, w := range []int{2, 8, 20} {
				if w < c.window {
					add(fmt.Sprintf("%s %d%s", policy, w, kind), policy, w, hard)
				}
			}
			add(fmt.Sprintf("%s %d%s", policy, c.window, kind), policy, c.window, hard)
		}
	}
	return list
}

// mix is MurmurHash3's finalizer, with which the table hashes keys.
func mix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}

// simulator runs the batches of a trace on a row cache.
type simulator struct {
	t            *trace
	cache        *rowcache.Cache
	window       int
	rows         int // to keep; 0: what the cache has room for
	keys, hashes []uint64
	refs, used   []uint32
	victims      []uint32
	lifetime     []uint32 // lookups of each key so far, as counted in its row
}

func runRowcache(t *trace, c config, policy string, window, rows int, bytes int64, hard bool) (hits int64, kept int, err error) {
	o := rowcache.Options{Words: c.valueBytes / 4, MaxBytes: bytes, Policy: policy, Hash: mix, LookaheadPasses: window}
	p := &simulator{t: t}
	if !hard {
		// The cache has more room than it needs; the simulator limits the rows.
		o.MaxBytes = 4*bytes + int64(window)*int64(c.lookups)*64 + 1<<20
		p.rows = rows
	}
	if p.cache, err = rowcache.New(o); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.cache.Close()) }()
	p.lifetime = make([]uint32, t.keys)
	if p.window, err = p.cache.Lookahead(t.ends[0]); err != nil {
		return 0, 0, err
	}
	if hits, err = p.run(); err != nil {
		return 0, 0, err
	}
	if s := p.cache.Stats(); hard {
		rows = int(s.Rows)
	}
	return hits, rows, nil
}

func (p *simulator) run() (hits int64, err error) {
	announced := 0
	for b := range p.t.batches {
		for ; announced < p.t.batches && announced <= b+p.window; announced++ {
			p.load(announced)
			if _, err := p.cache.Announce(int64(announced), p.keys, nil); err != nil {
				return 0, err
			}
		}
		p.load(b)
		found, err := p.pull(int64(b))
		if err != nil {
			return 0, fmt.Errorf("batch %d: %w", b, err)
		}
		if b >= p.t.from {
			hits += int64(found)
		}
		p.cache.Release(p.refs, true)
		lo, hi := p.t.span(b)
		for i := lo; i < hi; i++ {
			p.lifetime[p.t.ids[i]] += uint32(p.t.lookups[i])
		}
	}
	return hits, nil
}

// load makes the keys of a batch.
func (p *simulator) load(batch int) {
	lo, hi := p.t.span(batch)
	p.keys, p.hashes, p.used, p.refs = p.keys[:0], p.hashes[:0], p.used[:0], p.refs[:0]
	for _, k := range p.t.ids[lo:hi] {
		key := mix(uint64(k) + 1)
		p.keys = append(p.keys, key)
		p.hashes = append(p.hashes, mix(key))
		p.used = append(p.used, p.lifetime[k])
		p.refs = append(p.refs, 0)
	}
}

// pull does what a table does: find, make room, add.
func (p *simulator) pull(batch int64) (found int, err error) {
	found = p.cache.Find(batch, p.keys, p.hashes, p.refs)
	missing := len(p.keys) - found
	if p.rows > 0 {
		if excess := int(p.cache.Stats().Rows) + missing - p.rows; excess > 0 {
			if err := p.evict(excess); err != nil {
				return 0, err
			}
		}
	}
	for {
		added, err := p.cache.Insert(p.keys, p.hashes, p.used, p.refs, false)
		if err != nil {
			return 0, err
		}
		if missing -= added; missing == 0 {
			return found, nil
		}
		if err := p.evict(missing); err != nil {
			return 0, err
		}
	}
}

// evict evicts n rows as if the dirty ones had been written.
func (p *simulator) evict(n int) error {
	for n > 0 {
		p.victims = p.cache.Victims(n, p.victims[:0])
		if len(p.victims) == 0 {
			return fmt.Errorf("%d more rows do not fit the budget", n)
		}
		p.cache.Change(p.victims, rowcache.Change{Clear: rowcache.Dirty})
		n -= p.cache.Drop(p.victims)
	}
	return nil
}
