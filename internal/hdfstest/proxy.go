package hdfstest

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is a proxy in front of a DataNode process, with which tests slow the DataNode down or make
// something happen in the middle of a stream. It listens on the address that the NameNode gives to
// clients; the DataNode listens on the same port of another loopback address.
type proxy struct {
	node     int
	listener net.Listener
	to       string
	rate     atomic.Int64 // bytes per second to the client; 0: no limit
	accepted atomic.Int64
	moment   *atomic.Pointer[moment] // of all proxies of the cluster
}

// backendHost is where DataNodes behind a proxy listen. The NameNode gives clients
// another address, 127.0.0.1, since the DataNode connects to it from there.
const backendHost = "127.0.0.2"

func (c *Cluster) startProxy(node int) (*proxy, error) {
	port := c.dataPorts[node]
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	p := &proxy{node: node, listener: l, to: fmt.Sprintf("%s:%d", backendHost, port), moment: &c.moment}
	go p.serve() // until the listener is closed
	return p, nil
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		go p.forward(client)
	}
}

// forward ends when either side closes its connection.
func (p *proxy) forward(client net.Conn) {
	defer func() { _ = client.Close() }() // so that the client sees the end of the data
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		p.copy(server, client, ToDataNode) // until the client's data end
		_ = server.Close()
	}()
	p.copy(client, server, FromDataNode)
}

// copy copies one direction of a connection until the connection ends.
func (p *proxy) copy(to, from net.Conn, way Way) {
	buf := make([]byte, 64<<10)
	for passed := int64(0); ; {
		piece, rate := buf, p.rate.Load()
		if way == ToDataNode {
			rate = 0
		}
		if rate > 0 {
			piece = buf[:max(1, min(int64(len(buf)), rate/10))]
		}
		n, err := from.Read(piece)
		if rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
		piece = piece[:n]
		if m := p.moment.Load(); m != nil && m.way == way && passed < m.bytes && m.bytes <= passed+int64(n) && p.moment.CompareAndSwap(m, nil) {
			before := m.bytes - passed
			_, _ = to.Write(piece[:before]) // if it fails, so does the next one
			m.do(p.node)
			piece = piece[before:]
		}
		passed += int64(n)
		if len(piece) > 0 {
			if _, err := to.Write(piece); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// SlowDataNode limits the bytes per second that a DataNode behind a proxy (Config.Proxied) sends on
// each connection; 0 ends the limit.
func (c *Cluster) SlowDataNode(t testing.TB, i int, bytesPerSecond int) {
	t.Helper()
	c.proxies[i].rate.Store(int64(bytesPerSecond))
}

// Connections returns how often a DataNode behind a proxy has been dialed so far.
func (c *Cluster) Connections(i int) int { return int(c.proxies[i].accepted.Load()) }
