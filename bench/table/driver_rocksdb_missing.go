//go:build !rocksdb

package main

import (
	"context"
	"fmt"
)

var rocksDriver = driver{
	name: "rocksdb", about: "RocksDB: " + rocksMissing, copies: true,
	open: func(context.Context, openOptions) (store, error) {
		return nil, fmt.Errorf("%w: %s", errUnavailable, rocksMissing)
	},
}

const rocksMissing = "this build lacks it; install librocksdb-dev and build with -tags rocksdb"
