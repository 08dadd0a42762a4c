package hdfstest

import (
	"errors"
	"testing"
)

// Way is the way of bytes over a connection to a DataNode.
type Way int

// The ways of bytes.
const (
	ToDataNode Way = iota
	FromDataNode
)

// moment is a byte of a stream at which something happens.
type moment struct {
	way   Way
	bytes int64
	do    func(node int)
}

// At has something happen in the middle of a stream: do is called once, with the number of the
// DataNode, when a connection to a DataNode behind a proxy (Config.Proxied) has just carried so
// many bytes one way. No more bytes pass over it until do has returned. Connections between
// DataNodes, which forward blocks, count as those of clients do. A moment that has not come by
// the end of the test, or by a later call, does not come any more.
func (c *Cluster) At(t testing.TB, way Way, bytes int64, do func(node int)) {
	t.Helper()
	if !c.cfg.Proxied {
		t.Fatal(errors.New("hdfstest: the DataNodes of this cluster have no proxies (Config.Proxied)"))
	}
	m := &moment{way, bytes, do}
	c.moment.Store(m)
	t.Cleanup(func() { c.moment.CompareAndSwap(m, nil) })
}
