//go:build rocksdb

package main

/*
#cgo LDFLAGS: -lrocksdb
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <rocksdb/c.h>

enum { KEY = 8 };

// multi_get reads n sorted keys of KEY bytes. Row i goes to out + at[i] * row;
// found[i] says whether there is one. Errors of keys are returned as one.
static char* multi_get(rocksdb_t* db, rocksdb_readoptions_t* ro, rocksdb_column_family_handle_t* cf,
                       size_t n, const char* keys, const uint32_t* at, size_t row, char* out, unsigned char* found) {
	const char** list = malloc(n * sizeof *list);
	size_t* sizes = malloc(n * sizeof *sizes);
	rocksdb_pinnableslice_t** values = calloc(n, sizeof *values);
	char** errs = calloc(n, sizeof *errs);
	char* err = NULL;
	if (!list || !sizes || !values || !errs) {
		err = strdup("out of memory");
	} else {
		for (size_t i = 0; i < n; i++) {
			list[i] = keys + i * KEY;
			sizes[i] = KEY;
		}
		rocksdb_batched_multi_get_cf(db, ro, cf, n, list, sizes, values, errs, 1);
		for (size_t i = 0; i < n; i++) {
			found[i] = values[i] != NULL;
			if (errs[i]) {
				if (err) free(errs[i]); else err = errs[i];
			}
			if (values[i]) {
				size_t len;
				const char* v = rocksdb_pinnableslice_value(values[i], &len);
				if (len == row) memcpy(out + (size_t)at[i] * row, v, row);
				else if (!err) err = strdup("a row of another size");
				rocksdb_pinnableslice_destroy(values[i]);
			}
		}
	}
	free(list); free(sizes); free(values); free(errs);
	return err;
}

// write_rows writes n rows under keys of KEY bytes as one batch.
static char* write_rows(rocksdb_t* db, rocksdb_writeoptions_t* wo, size_t n, const char* keys, size_t row, const char* rows) {
	char* err = NULL;
	rocksdb_writebatch_t* b = rocksdb_writebatch_create();
	for (size_t i = 0; i < n; i++) rocksdb_writebatch_put(b, keys + i * KEY, KEY, rows + i * row, row);
	rocksdb_write(db, wo, b, &err);
	rocksdb_writebatch_destroy(b);
	return err;
}

static rocksdb_t* open_db(rocksdb_options_t* o, const char* path, rocksdb_column_family_handle_t** cf, char** err) {
	const char* names[] = {"default"};
	const rocksdb_options_t* opts[] = {o};
	return rocksdb_open_column_families(o, path, 1, names, opts, cf, err);
}
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"
)

var rocksDriver = driver{
	name: "rocksdb", copies: true, blocking: true, open: openRocks,
	about: "RocksDB, C API: no WAL, 10-bit Bloom filters, no compression, budget = block cache (index and filters in it) + memtables, concurrent sorted MultiGets; direct reads, flushes and compactions",
}

// rocksStore drives a RocksDB database.
type rocksStore struct {
	o       openOptions
	db      *C.rocksdb_t
	cf      *C.rocksdb_column_family_handle_t
	options *C.rocksdb_options_t
	cache   *C.rocksdb_cache_t
	ro      *C.rocksdb_readoptions_t
	wo      *C.rocksdb_writeoptions_t
	ring    flatRing
	keys    sortedKeys
	found   []byte
	written []byte // keys of a push
}

// rocksError turns a message of RocksDB's into an error, and frees it.
func rocksError(what string, msg *C.char) error {
	if msg == nil {
		return nil
	}
	defer C.rocksdb_free(unsafe.Pointer(msg))
	return fmt.Errorf("rocksdb: %s: %s", what, C.GoString(msg))
}

func openRocks(_ context.Context, o openOptions) (store, error) {
	s := &rocksStore{o: o, ring: flatRing{words: o.Layout.Words()}}
	s.setOptions()
	s.ro, s.wo = C.rocksdb_readoptions_create(), C.rocksdb_writeoptions_create()
	C.rocksdb_writeoptions_disable_WAL(s.wo, 1)
	path := C.CString(o.Dir)
	defer C.free(unsafe.Pointer(path))
	var msg *C.char
	s.db = C.open_db(s.options, path, &s.cf, &msg)
	if err := rocksError("open "+o.Dir, msg); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// setOptions makes the options: a quarter of the budget for memtables, the rest
// for the block cache.
func (s *rocksStore) setOptions() {
	memtables := max(s.o.BudgetBytes/4, 512<<10)
	s.cache = C.rocksdb_cache_create_lru(C.size_t(max(s.o.BudgetBytes-memtables, 1<<20)))
	b := C.rocksdb_block_based_options_create()
	C.rocksdb_block_based_options_set_block_cache(b, s.cache)
	C.rocksdb_block_based_options_set_block_size(b, 4096)
	C.rocksdb_block_based_options_set_format_version(b, 5)
	C.rocksdb_block_based_options_set_filter_policy(b, C.rocksdb_filterpolicy_create_bloom_full(10))
	C.rocksdb_block_based_options_set_cache_index_and_filter_blocks(b, 1)
	C.rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(b, 1)
	C.rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(b, 1)
	if s.partition() {
		C.rocksdb_block_based_options_set_index_type(b, C.rocksdb_block_based_table_index_type_two_level_index_search)
		C.rocksdb_block_based_options_set_partition_filters(b, 1)
		C.rocksdb_block_based_options_set_metadata_block_size(b, 4096)
		C.rocksdb_block_based_options_set_pin_top_level_index_and_filter(b, 1)
	}
	o := C.rocksdb_options_create()
	s.options = o
	C.rocksdb_options_set_create_if_missing(o, 1)
	C.rocksdb_options_set_block_based_table_factory(o, b)
	C.rocksdb_block_based_options_destroy(b)
	C.rocksdb_options_increase_parallelism(o, C.int(max(2, runtime.NumCPU())))
	C.rocksdb_options_set_compression(o, C.rocksdb_no_compression)
	C.rocksdb_options_set_use_direct_reads(o, 1)
	C.rocksdb_options_set_use_direct_io_for_flush_and_compaction(o, 1)
	C.rocksdb_options_set_write_buffer_size(o, C.size_t(memtables/2))
	C.rocksdb_options_set_max_write_buffer_number(o, 2)
	C.rocksdb_options_set_db_write_buffer_size(o, C.size_t(memtables))
	C.rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1)
	C.rocksdb_options_set_max_open_files(o, -1)
	C.rocksdb_options_set_unordered_write(o, 1)
	if s.o.Full { // the last level needs no filter when it has every key
		C.rocksdb_options_set_optimize_filters_for_hits(o, 1)
	}
}

// partition says whether index and filters are too large to stay in the cache
// as a whole: about 2 bytes a key, 1.25 of them the filter's.
func (s *rocksStore) partition() bool { return 2*int64(s.o.Keys) > s.o.BudgetBytes/4 }

// Load also compacts everything, which leaves one read per key.
func (s *rocksStore) Load(ctx context.Context, n int, row func(int, []float32) uint64) error {
	words := s.o.Layout.Words()
	r := flatRows{words: words, data: make([]float32, loadBatchRows*words)}
	keys := make([]uint64, 0, loadBatchRows)
	for i := 0; i < n; {
		keys = keys[:0]
		for ; i < n && len(keys) < loadBatchRows; i++ {
			keys = append(keys, row(i, r.Row(len(keys))))
		}
		if err := s.Push(ctx, keys, &r); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := s.Save(ctx); err != nil {
		return err
	}
	C.rocksdb_compact_range(s.db, nil, 0, nil, 0)
	return nil
}

func (s *rocksStore) Pull(ctx context.Context, keys []uint64) (rows, error) {
	r := s.ring.take(len(keys))
	s.keys.set(keys)
	if cap(s.found) < len(keys) {
		s.found = make([]byte, len(keys))
	}
	s.found = s.found[:len(keys)]
	var g errgroup.Group
	for i := range s.o.Getters {
		from, to := i*len(keys)/s.o.Getters, (i+1)*len(keys)/s.o.Getters
		if from < to {
			g.Go(func() error { return s.get(r, from, to) })
		}
	}
	return r, errors.Join(g.Wait(), ctx.Err())
}

// get reads the sorted keys from … to-1.
func (s *rocksStore) get(r *flatRows, from, to int) error {
	msg := C.multi_get(s.db, s.ro, s.cf, C.size_t(to-from),
		(*C.char)(unsafe.Pointer(&s.keys.bytes[from*keyBytes])), (*C.uint32_t)(&s.keys.at[from]),
		C.size_t(4*r.words), (*C.char)(unsafe.Pointer(&r.data[0])), (*C.uchar)(&s.found[from]))
	if msg != nil {
		return rocksError("get", msg)
	}
	for i := from; i < to; i++ {
		if s.found[i] == 0 {
			row := r.Row(int(s.keys.at[i]))
			clear(row)
			initRow(s.o.Layout, s.keys.order[i].key, row)
		}
	}
	return nil
}

// Push writes with one thread per processor, since memtables accept concurrent writers.
func (s *rocksStore) Push(ctx context.Context, keys []uint64, r rows) error {
	flat := r.(*flatRows)
	s.written = s.written[:0]
	for _, k := range keys {
		s.written = binary.BigEndian.AppendUint64(s.written, k)
	}
	var g errgroup.Group
	writers := runtime.NumCPU()
	for i := range writers {
		from, to := i*len(keys)/writers, (i+1)*len(keys)/writers
		if from < to {
			g.Go(func() error {
				return rocksError("write", C.write_rows(s.db, s.wo, C.size_t(to-from),
					(*C.char)(unsafe.Pointer(&s.written[from*keyBytes])), C.size_t(4*flat.words), (*C.char)(unsafe.Pointer(&flat.Row(from)[0]))))
			})
		}
	}
	return errors.Join(g.Wait(), ctx.Err())
}

func (s *rocksStore) Save(context.Context) error {
	fo := C.rocksdb_flushoptions_create()
	defer C.rocksdb_flushoptions_destroy(fo)
	C.rocksdb_flushoptions_set_wait(fo, 1)
	var msg *C.char
	C.rocksdb_flush(s.db, fo, &msg)
	return rocksError("flush", msg)
}

// Counters has no count of reads: RocksDB's statistics would slow it down, and every read
// system call of the process reads a block past the page cache, so that these calls can
// be counted instead.
func (s *rocksStore) Counters() counters {
	own := map[string]any{}
	for _, p := range []string{"rocksdb.block-cache-usage", "rocksdb.cur-size-all-mem-tables", "rocksdb.estimate-table-readers-mem", "rocksdb.estimate-num-keys", "rocksdb.live-sst-files-size"} {
		name := C.CString(p)
		var n C.uint64_t
		if C.rocksdb_property_int(s.db, name, &n) == 0 {
			own[strings.TrimPrefix(p, "rocksdb.")] = uint64(n)
		}
		C.free(unsafe.Pointer(name))
	}
	return counters{DeviceReads: -1, Own: own}
}

func (s *rocksStore) Close() error {
	C.rocksdb_column_family_handle_destroy(s.cf)
	C.rocksdb_close(s.db)
	s.free()
	return nil
}

func (s *rocksStore) free() {
	C.rocksdb_readoptions_destroy(s.ro)
	C.rocksdb_writeoptions_destroy(s.wo)
	C.rocksdb_options_destroy(s.options)
	C.rocksdb_cache_destroy(s.cache)
}
