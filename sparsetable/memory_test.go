package sparsetable_test

import (
	"context"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

func openMemory(ctx context.Context, o sparsetable.Options) (sparsetable.Table, error) {
	o.Kind = sparsetable.KindMemory
	return sparsetable.Open(ctx, o)
}

func TestMemory(t *testing.T) { tabletest.Run(t, tabletest.Kind{Open: openMemory}) }
