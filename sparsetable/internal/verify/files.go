package verify

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
)

// Files reports files of snapshots that are missing or too short. dirs are the directories of the
// devices.
func (v *Report) Files(devices []blockio.Device, dirs []string, table uint64, snapshots []catalog.Snapshot, log *slog.Logger) error {
	names := map[string]string{} // the directory of each file
	for _, d := range devices {
		list, err := d.List()
		if err != nil {
			return err
		}
		for _, n := range list {
			names[n] = d.Dir()
		}
	}
	wanted := map[string]bool{}
	for _, s := range snapshots {
		v.At = s.ID
		for _, f := range s.Files {
			name := bucketfile.FileName(table, f.ID, f.Incarnation)
			wanted[name] = true
			v.file(devices, dirs, names, name, f.Bytes)
		}
		for _, d := range s.Deltas {
			wanted[d.Name] = true
			v.file(devices, dirs, names, d.Name, d.Bytes)
		}
		v.Done.TotalRows += s.Rows
	}
	v.At = 0
	prefix := deltafile.Prefix(table)
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(n, prefix) && !wanted[n] {
			log.Info("no snapshot refers to this file; it is removed when the table is next opened for writing", "file", filepath.Join(names[n], n))
		}
	}
	return nil
}

// file reports a file of a snapshot that is missing or too short.
func (v *Report) file(devices []blockio.Device, dirs []string, names map[string]string, name string, bytes int64) {
	dir, ok := names[name]
	if !ok {
		v.named[name] = true
		v.Found(Fault{File: name, Offset: -1, Slot: -1, Missing: true, Reason: "it is in none of the table's directories: " + strings.Join(dirs, ", ")})
		return
	}
	path := filepath.Join(dir, name)
	faults := v.Done.Faults
	defer func() {
		if v.Done.Faults > faults {
			v.named[path] = true
		}
	}()
	for _, d := range devices {
		if d.Dir() != dir {
			continue
		}
		f, err := d.OpenFile(name)
		if err != nil {
			v.Found(Fault{File: path, Offset: -1, Slot: -1, Reason: err.Error()})
			return
		}
		size, err := f.Size()
		if err = errors.Join(err, f.Close()); err != nil {
			v.Found(Fault{File: path, Offset: -1, Slot: -1, Reason: err.Error()})
		} else if size < bytes {
			v.Found(Fault{File: path, Offset: size, Slot: -1, Reason: fmt.Sprintf("the file ends here, but the snapshot refers to %d bytes of it", bytes)})
		}
		return
	}
}
