package atomicfile

import "sync/atomic"

var faults atomic.Pointer[func(operation, path string) error]

// InjectFaults has ask called before every operation on disk, which fails with the error
// that ask returns. It is for tests; nil ends it.
func InjectFaults(ask func(operation, path string) error) {
	if ask == nil {
		faults.Store(nil)
		return
	}
	faults.Store(&ask)
}

func fault(operation, path string) error {
	if ask := faults.Load(); ask != nil {
		return (*ask)(operation, path)
	}
	return nil
}
