package sparsetable

import (
	"context"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/blockio"
)

// OpenSSDOn opens a table of KindSSD on devices and a file system of a test's
// choice.
func OpenSSDOn(ctx context.Context, o Options, devices []blockio.Device, fs vfs.FS) (Table, error) {
	o.Kind = KindSSD
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.ensureDefaults()
	return openSSD(ctx, o, ssdStorage{devices: devices, fs: fs})
}

// SmallestSSD is the smallest budget of a table that has so many rows in memory.
func SmallestSSD(l Layout, s SSDOptions, resident int64) int64 {
	o := Options{Dir: "/table", SSD: s}
	o.ensureSSDDefaults()
	return smallestSSD(l, o.SSD, 0, resident, 0)
}
