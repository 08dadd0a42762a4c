package hdfstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Ports are taken below the range from which Linux gives ports to outgoing connections
// (32768 and above). With a port in that range, a client that keeps dialing a server
// which is being restarted would sooner or later get the server's own port, connect to
// itself and keep the server from listening again.
const firstPort, lastPort = 15000, 32000

// reservedPort is a port that no other test process of this machine takes until the
// holder is closed.
type reservedPort struct {
	port   int
	holder net.Listener
}

// portFinder reserves n ports.
type portFinder func(n int) ([]reservedPort, error)

// reservePorts finds TCP ports on which no process listens, and reserves them among the
// test processes of this machine: a server of a cluster listens only later, and not
// while it is being restarted. The holder is a Unix socket in the abstract namespace,
// which ends with the test process at the latest. Another program may still take a
// port; see retryPorts.
func reservePorts(n int) ([]reservedPort, error) {
	var found []reservedPort
	for attempt := 0; len(found) < n; attempt++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		holder, err := net.Listen("unix", fmt.Sprintf("@aibox-hdfstest-port-%d", port))
		if err == nil && !taken(port) {
			found = append(found, reservedPort{port, holder})
			continue
		}
		if err == nil {
			_ = holder.Close() // nothing was written
		}
		if attempt > 1000 { // the machine is broken
			return found, errors.New("hdfstest: there are no free ports")
		}
	}
	return found, nil
}

// taken reports whether another program listens on a port.
func taken(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return true
	}
	_ = l.Close() // nothing was written
	return false
}

// awaitPort waits until a server can listen at the address of a killed one.
func awaitPort(address string) error {
	for deadline := time.Now().Add(commandTimeout); ; time.Sleep(50 * time.Millisecond) {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("hdfstest: the port of a server stays taken: %w", err)
		}
	}
}

// awaitServer waits until a server that was started listens at an address.
func awaitServer(p *process, address string) error {
	ctx, cancel := waiting([]*process{p})
	defer cancel()
	for ; ; time.Sleep(50 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, commandTimeout)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("hdfstest: a server that was started does not listen: %w: %w", err, context.Cause(ctx))
		}
	}
}

// errPortTaken means that a start failed while another program listened at a port that was free
// before.
var errPortTaken = errors.New("another program has taken a port of the cluster")

// retryPorts calls start with a new directory until it succeeds, or fails for a reason other than a
// taken port.
func retryPorts[T any](dir string, start func(dir string) (T, error)) (c T, err error) {
	for try := range 5 {
		sub := filepath.Join(dir, fmt.Sprintf("try%d", try))
		if err = os.Mkdir(sub, 0o755); err != nil {
			return c, err
		}
		if c, err = start(sub); !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
	return c, err
}
