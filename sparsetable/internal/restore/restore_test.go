package restore

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"testing"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

const (
	rowWords = 4
	tableID  = 7
)

var errTooSmall = errors.New("too small")

// table is a table of slots without buckets. It records rows that leave its cache in left.
type table struct {
	*Restorer
	cacheBytes int64
	left       map[uint64]float32
	emptied    int
	borrowed   int64
	room       int // for HasRoom
}

func (t *table) InsertDirty(_ context.Context, rows *rowcache.Incoming, refs []uint32) error {
	for done := 0; done < len(rows.Keys); {
		n, err := t.Cache.Reinsert(rows.Keys[done:], rows.Hashes[done:], rows.Uses[done:], refs[done:], false)
		if err != nil {
			return err
		}
		for i := done; i < done+n; i++ {
			copy(t.Cache.Row(refs[i]), rows.Rows[i])
		}
		if done += n; n == 0 {
			return errTooSmall
		}
	}
	return nil
}

func (t *table) Empty(context.Context) error {
	t.emptied++
	t.Cache.DropIf(func(e rowcache.Entry) bool { t.left[e.Key] = e.Row[0]; return true })
	return nil
}
func (t *table) Borrow(_ context.Context, bytes int64) error { t.borrowed += bytes; return nil }
func (t *table) GiveBack(bytes int64)                        { t.borrowed -= bytes }
func (t *table) FitRows() int64                              { return t.Cache.Stats().FitRows }
func (t *table) HasRoom(rows int) bool                       { return rows <= t.room }
func (t *table) TooSmall() error                             { return errTooSmall }

func newTable(t *testing.T, cacheBytes int64) *table {
	dev := blocktest.New(blocktest.Options{})
	tab := &table{cacheBytes: cacheBytes, left: map[uint64]float32{}, room: 1 << 30}
	index, err := slots.New(slots.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for index.Slots() < 50 {
		if err := index.Grow(); err != nil {
			t.Fatal(err)
		}
	}
	hash := slots.Hasher(99)
	cache, err := rowcache.New(rowcache.Options{Words: rowWords, MaxBytes: cacheBytes, Policy: rowcache.Policies()[0], Hash: hash.Of})
	if err != nil {
		t.Fatal(err)
	}
	deltas := &deltafile.Store{
		Devices: []blockio.Device{dev}, Table: tableID, RowBytes: 4 * rowWords, Unit: 512,
		Blocks: blockio.NewPool(512, 0), Reads: blockio.NewPool(512, 0),
	}
	mu := new(sync.RWMutex)
	store := checkpoint.New(checkpoint.Options{Deltas: deltas, Cache: cache, Index: index, IndexMu: mu, Hash: hash.Of})
	tab.Restorer = &Restorer{Options: Options{
		Table: tab, Cache: cache, Checkpoints: store, Index: index, IndexMu: mu, Changing: guard.NewLock(),
		Hash: hash, Words: rowWords, Incoming: new(rowcache.Incoming),
	}}
	t.Cleanup(func() {
		store.Close()
		deltas.Reads.Close()
		if err := errors.Join(cache.Close(), index.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return tab
}

// write writes a delta file with dirty rows (or clean ones) with the keys from first to end-1, all
// of the same value, and returns its entry in a snapshot's record.
func (t *table) write(tt *testing.T, number uint64, kind deltafile.Kind, first, end uint64, value float32) catalog.Delta {
	d := catalog.Delta{Name: deltafile.Name(tableID, number, 0), Snapshot: number, Rows: int64(end - first), Seq: number}
	s := t.Checkpoints.Deltas
	var file []byte
	for block := uint32(0); first < end; block++ {
		n := min(end-first, uint64(s.RowsPerBlock()))
		b := bytes.Repeat([]byte{0}, deltafile.HeaderBytes)
		for range n {
			b = deltafile.AppendEntry(b, first, 1, false, []float32{value, 0, 0, 0})
			first++
		}
		b = append(b, make([]byte, s.BlockBytes()-len(b))...)
		deltafile.Seal(b, deltafile.Header{Table: tableID, File: number, Block: block, Rows: uint32(n), Kind: kind})
		file = append(file, b...)
	}
	f, err := s.Devices[0].Create(d.Name)
	if err == nil {
		_, err = f.WriteAt(file, 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		tt.Fatal(err)
	}
	d.Bytes = int64(len(file))
	if kind == deltafile.Dirty {
		d.DirtyBytes, d.DirtyRows = d.Bytes, d.Rows
	}
	return d
}

// rows returns the rows of the table by key. Those in the cache must all be of one kind.
func (t *table) rows(tt *testing.T, dirty bool) map[uint64]float32 {
	all := maps.Clone(t.left)
	for at, end := uint32(0), false; !end; {
		at, end = t.Cache.VisitFrom(at, rowcache.Pick{}, math.MaxInt, func(e rowcache.Entry) rowcache.Change {
			if _, left := t.left[e.Key]; left {
				tt.Errorf("key %d has left the cache and is there again", e.Key)
			}
			if e.Pins != 0 || (e.Flags&rowcache.Dirty != 0) != dirty {
				tt.Errorf("key %d has %d pins and flags %x", e.Key, e.Pins, e.Flags)
			}
			all[e.Key] = e.Row[0]
			return rowcache.Change{}
		})
	}
	return all
}

// Of several files, the newest version of each row counts, whether all rows fit the cache or they
// are restored in parts, by hash, where the rows of each part leave the cache before the next part.
func TestNewestVersion(t *testing.T) {
	const rows = 6000
	want := map[uint64]float32{}
	for k := range uint64(rows) {
		want[k] = 1 + float32(min(k/2000, 2))
	}
	for _, c := range []struct {
		bytes   int64
		emptied bool
	}{{8 << 20, false}, {200 << 10, true}} {
		tab := newTable(t, c.bytes)
		s := catalog.Snapshot{ID: 9, Deltas: []catalog.Delta{
			tab.write(t, 1, deltafile.Dirty, 0, 4000, 1), tab.write(t, 2, deltafile.Dirty, 2000, 5000, 2), tab.write(t, 3, deltafile.Dirty, 4000, rows, 3),
		}}
		if err := tab.Dirty(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := tab.rows(t, true); !maps.Equal(got, want) {
			t.Errorf("a cache of %d bytes: %d rows are restored, or others than the newest versions", c.bytes, len(got))
		}
		if (tab.emptied > 0) != c.emptied || tab.borrowed != 0 || tab.Restored() < rows {
			t.Errorf("a cache of %d bytes: emptied %d times, %d bytes still borrowed, %d rows restored", c.bytes, tab.emptied, tab.borrowed, tab.Restored())
		}
	}
}

// The ranges of hashes into which a restore is divided contain each hash exactly once.
func TestHashRange(t *testing.T) {
	for _, hash := range []uint64{0, 1 << 63, 1<<62 + 5, 1<<64 - 1} {
		for bits := range uint(4) {
			n := 0
			for first := range uint64(1) << bits {
				if (hashRange{first, bits}).has(hash) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("hash %x is in %d ranges of %d bits", hash, n, bits)
			}
		}
	}
}

// Clean rows are restored while there is room. In this test no slot has a bucket, so that none of
// them is the latest version.
func TestCleanRowsNeedBuckets(t *testing.T) {
	tab := newTable(t, 8<<20)
	s := catalog.Snapshot{ID: 9, Deltas: []catalog.Delta{tab.write(t, 1, deltafile.Clean, 0, 500, 1)}}
	if n, err := tab.Clean(t.Context(), s, nil); n != 0 || err != nil || len(tab.rows(t, false)) != 0 {
		t.Errorf("%d rows are restored, %v", n, err)
	}
	if err := tab.Changing.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	tab.Changing.Release()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := tab.Clean(ctx, s, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// Block restores rows that are not in the cache yet, as far as there is room.
func TestBlock(t *testing.T) {
	tab := newTable(t, 8<<20)
	d := tab.write(t, 1, deltafile.Dirty, 0, 100, 1)
	for _, c := range []struct {
		room int
		full bool
		rows int
	}{{99, true, 0}, {100, false, 100}, {0, false, 100}} {
		tab.room = c.room
		err := tab.Checkpoints.EachDirty(t.Context(), checkpoint.Layer{d}, func(_ int, block *deltafile.Reader, n int) error {
			full, err := tab.Block(block, n, &d)
			if full != c.full {
				t.Errorf("room for %d rows: full is %v", c.room, full)
			}
			return err
		})
		if got := tab.rows(t, false); err != nil || len(got) != c.rows {
			t.Errorf("room for %d rows: %d are restored, %v", c.room, len(got), err)
		}
	}
}
