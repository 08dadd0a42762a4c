package ssd

import (
	"context"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/plan"
)

// SetShape sets the mean number of rows in a bucket of a table on SSD, as if rows were larger, and
// gives the index and the filters that many bytes of its memory.
func SetShape(tab contract.Scanner, small, large, huge int, indexBytes int64) {
	t := tab.(*Table)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	s := &t.plan.Shape
	s.Small, s.Large, s.Huge = small, large, huge
	if indexBytes > 0 {
		t.plan.SharedBytes = int64(float64(indexBytes) / plan.IndexShare)
	}
}

// Reshape splits or merges slots until nothing is left to split or merge.
func Reshape(ctx context.Context, tab contract.Scanner) error {
	<-tab.(*Table).restored
	return ReshapeAmidRestore(ctx, tab)
}

// ReshapeAmidRestore is Reshape without waiting until the most used rows are restored.
func ReshapeAmidRestore(ctx context.Context, tab contract.Scanner) error {
	t := tab.(*Table)
	for more := true; more; {
		var err error
		if more, err = t.reshape(); err == nil {
			err = t.keepSpace(ctx)
		}
		if err != nil {
			return apierr.Of(err)
		}
	}
	return nil
}

// KeepSpaceBeside calls keepSpace, as a Pull does after it has written buckets, while another
// goroutine is emptying a file.
func KeepSpaceBeside(ctx context.Context, tab contract.Scanner) error {
	t := tab.(*Table)
	t.rewrite.compacting.Lock()
	defer t.rewrite.compacting.Release()
	t.uncheckedBytes.Store(int64(t.plan.BufferBytes))
	return t.keepSpace(ctx)
}
