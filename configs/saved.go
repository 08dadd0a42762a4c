package configs

import (
	"strings"

	"aibox/configs/internal/yamltree"
)

// A model keeps its job with every default written out. If somebody overrides a key of
// such a job, as with `aibox eval --set data.format=parquet`, keys that follow from the
// overridden one would stay as they were: the delimiter of CSV for files of TSV, and
// settings of text files for Parquet, where they are faults. So, of a saved job, what
// equals its default is taken as not given, and what an override makes useless is left out.

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
