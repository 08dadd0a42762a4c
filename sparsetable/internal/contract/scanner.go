package contract

import (
	"context"

	"aibox/sparsetable/internal/layout"
)

// Scanner yields rows of one layout, as Layout and Scan of sparsetable.Table do.
type Scanner interface {
	Layout() layout.Layout
	Scan(ctx context.Context, fn func(key uint64, row []float32) error) error
}
