package hdfstest

import (
	"errors"
	"testing"
)

// Way is the direction of bytes on a connection to a DataNode.
type Way int

// The directions.
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

// At makes something happen in the middle of a stream: do is called once, with the number of the
// DataNode, when a connection to a DataNode behind a proxy (Config.Proxied) has just carried the
// given number of bytes in one direction. The connection is paused until do has returned.
// Connections between DataNodes, which forward blocks, count like those of clients. The call is
// cancelled by the end of the test and by a later call of At.
func (c *Cluster) At(t testing.TB, way Way, bytes int64, do func(node int)) {
	t.Helper()
	if !c.cfg.Proxied {
		t.Fatal(errors.New("hdfstest: the DataNodes of this cluster have no proxies (Config.Proxied)"))
	}
	m := &moment{way, bytes, do}
	c.moment.Store(m)
	t.Cleanup(func() { c.moment.CompareAndSwap(m, nil) })
}
