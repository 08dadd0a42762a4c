package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
)

// keyFileBatch is the number of keys in each batch of a load's file.
const keyFileBatch = 1 << 16

// writeKeys writes the keys of the job's phase to a new file: for every mini-batch the
// number of its keys and then the keys, each as 8 bytes, little-endian. The file of a
// load has every key once. It returns the numbers of keys.
func (j *job) writeKeys(name string) (counts []int, err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	put := func(keys []uint64) error {
		counts = append(counts, len(keys))
		if err := binary.Write(w, binary.LittleEndian, uint64(len(keys))); err != nil {
			return err
		}
		return binary.Write(w, binary.LittleEndian, keys)
	}
	var keys []uint64
	if j.Phase == phaseLoad {
		order := loadOrder(j.Keys)
		for i := 0; i < j.Keys; {
			keys = keys[:0]
			for ; i < j.Keys && len(keys) < keyFileBatch; i++ {
				keys = append(keys, keyOf(order(i)))
			}
			if err := put(keys); err != nil {
				return nil, err
			}
		}
		return counts, w.Flush()
	}
	t, err := newTrace(j.Keys, j.Batches, j.Lookups, j.S, j.phaseSeed())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	for b := range t.batches() {
		keys = t.appendKeys(keys[:0], b)
		if err := put(keys); err != nil {
			return nil, err
		}
	}
	return counts, w.Flush()
}
