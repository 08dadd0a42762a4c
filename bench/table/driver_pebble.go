package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

var pebbleDriver = driver{
	name: "pebble", copies: true, blocking: true, open: openPebble,
	about: "Pebble 2.1.7: no WAL, 10-bit Bloom filters, no compression, budget = block cache with memtables in it, concurrent Gets; direct point reads, buffered compactions and writes",
}

// pebbleStore drives a Pebble database.
type pebbleStore struct {
	o    openOptions
	db   *pebble.DB
	fs   *directFS
	ring flatRing
	keys sortedKeys
}

func openPebble(_ context.Context, o openOptions) (store, error) {
	fs := &directFS{FS: vfs.Default}
	cache := pebble.NewCache(o.BudgetBytes)
	defer cache.Unref() // the database holds it, too
	po := &pebble.Options{
		FS: fs, Cache: cache, DisableWAL: true, BytesPerSync: 1 << 20,
		// Memtables are taken out of the cache: two of an eighth leave three
		// quarters to blocks.
		MemTableSize: uint64(max(o.BudgetBytes/8, 256<<10)), MemTableStopWritesThreshold: 2,
		L0CompactionThreshold: 2, L0StopWritesThreshold: 1000,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
		MaxOpenFiles:               1000, LBaseMaxBytes: 64 << 20,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             pebbleLogger{},
	}
	for i := range po.Levels {
		l := &po.Levels[i]
		l.BlockSize, l.Compression = 4096, func() *sstable.CompressionProfile { return sstable.NoCompression }
		// The last level needs no filter when it has every key.
		if i < len(po.Levels)-1 || !o.Full {
			l.FilterPolicy, l.FilterType = bloom.FilterPolicy(10), pebble.TableFilter
		}
	}
	db, err := pebble.Open(o.Dir, po)
	if err != nil {
		return nil, err
	}
	return &pebbleStore{o: o, db: db, fs: fs, ring: flatRing{words: o.Layout.Words()}}, nil
}

// pebbleLogger ignores all messages except those after which the process must end.
type pebbleLogger struct{}

func (pebbleLogger) Infof(string, ...any)  {}
func (pebbleLogger) Errorf(string, ...any) {}
func (pebbleLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("pebble: "+format, args...))
}

// loadBatchRows is how many rows Load commits at once.
const loadBatchRows = 4096

// Load also compacts everything, which leaves one read per key.
func (s *pebbleStore) Load(ctx context.Context, n int, row func(int, []float32) uint64) error {
	words := s.o.Layout.Words()
	r := flatRows{words: words, data: make([]float32, loadBatchRows*words)}
	keys := make([]uint64, 0, loadBatchRows)
	for i := 0; i < n; {
		keys = keys[:0]
		for ; i < n && len(keys) < loadBatchRows; i++ {
			keys = append(keys, row(i, r.Row(len(keys))))
		}
		if err := s.write(keys, &r); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := s.db.Flush(); err != nil {
		return err
	}
	var last [keyBytes + 1]byte
	for i := range last {
		last[i] = 0xff
	}
	return s.db.Compact(ctx, nil, last[:], true)
}

func (s *pebbleStore) Pull(ctx context.Context, keys []uint64) (rows, error) {
	r := s.ring.take(len(keys))
	s.keys.set(keys)
	g, ctx := errgroup.WithContext(ctx)
	for i := range s.o.Getters {
		from, to := i*len(keys)/s.o.Getters, (i+1)*len(keys)/s.o.Getters
		if from < to {
			g.Go(func() error { return s.get(ctx, r, from, to) })
		}
	}
	return r, g.Wait()
}

// get reads the sorted keys from … to-1.
func (s *pebbleStore) get(ctx context.Context, r *flatRows, from, to int) error {
	for i := from; i < to; i++ {
		row := r.Row(int(s.keys.at[i]))
		value, closer, err := s.db.Get(s.keys.bytes[i*keyBytes : (i+1)*keyBytes])
		if errors.Is(err, pebble.ErrNotFound) {
			clear(row)
			initRow(s.o.Layout, s.keys.order[i].key, row)
			continue
		}
		if err != nil {
			return err
		}
		n := copy(rowBytes(row), value)
		if err := closer.Close(); err != nil {
			return err
		}
		if n != 4*len(row) {
			return fmt.Errorf("pebble: a row of %d bytes, want %d", n, 4*len(row))
		}
	}
	return ctx.Err()
}

// rowBytes returns the memory of a row, which is what stores keep.
func rowBytes(row []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row))
}

func (s *pebbleStore) Push(_ context.Context, keys []uint64, r rows) error {
	return s.write(keys, r.(*flatRows))
}

func (s *pebbleStore) write(keys []uint64, r *flatRows) error {
	const perEntry = keyBytes + 8 // key, kind and lengths
	b := s.db.NewBatchWithSize(len(keys)*(perEntry+4*r.words) + 64)
	for i, k := range keys {
		op := b.SetDeferred(keyBytes, 4*r.words)
		binary.BigEndian.PutUint64(op.Key, k)
		copy(op.Value, rowBytes(r.Row(i)))
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

func (s *pebbleStore) Save(context.Context) error { return s.db.Flush() }

func (s *pebbleStore) Counters() counters {
	m := s.db.Metrics()
	total := m.Total()
	return counters{DeviceReads: s.fs.reads.Load(), Own: map[string]any{
		"block_cache_hits": m.BlockCache.Hits, "block_cache_misses": m.BlockCache.Misses, "block_cache_bytes": m.BlockCache.Size,
		"bytes_flushed": total.TableBytesFlushed, "bytes_compacted": total.TableBytesCompacted,
		"memtable_bytes": m.MemTable.Size, "buffered_reads": s.fs.buffered.Load(),
	}}
}

func (s *pebbleStore) Close() error { return s.db.Close() }
