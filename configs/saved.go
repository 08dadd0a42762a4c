package configs

import (
	"strings"

	"aibox/configs/internal/yamltree"
)

// A model keeps its job with every default written out. If a user overrides a key of such a job, as
// with `aibox eval --set data.format=parquet`, keys that depend on the overridden one would not
// change: CSV's delimiter would stay for TSV files, and settings of text files for Parquet, where
// they are faults. In a saved job, values that equal their default are therefore treated as not
// given, and keys that an override leaves without effect are dropped.

// forgetDefaults removes from the tree of a saved job the keys whose values are the
// defaults that the rest of the job gives.
func (l *loader) forgetDefaults(root *yamltree.Node, data []byte) {
	plain := l.opts
	plain.Set, plain.Saved = nil, false
	saved := newLoader(&Job{file: l.job.file}, plain)
	saved.load(data)
	if len(saved.Faults) > 0 || root == nil {
		return // loading reports them
	}
	for _, path := range saved.Defaulted() {
		root.Remove(strings.Split(path, "."))
	}
}
