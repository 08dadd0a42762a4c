package hdfstest

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// Ports are reserved until they are released, also among other processes.
func TestReservePorts(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		ports, err := reservePorts(100)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if seen[p.port] {
				t.Errorf("port %d was reserved twice", p.port)
			}
			seen[p.port] = true
			t.Cleanup(func() { _ = p.holder.Close() })
		}
	}
}

// A start is tried again in a new directory if a port was taken, and only then.
func TestRetryPorts(t *testing.T) {
	other, taken := errors.New("another reason"), fmt.Errorf("%w: why", errPortTaken)
	for name, errs := range map[string][]error{
		"once":     {nil},
		"taken":    {taken, taken, nil},
		"other":    {other},
		"for ever": {taken, taken, taken, taken, taken},
	} {
		dirs := map[string]bool{}
		got, err := retryPorts(t.TempDir(), func(dir string) (int, error) {
			dirs[dir] = true
			return len(dirs), errs[len(dirs)-1]
		})
		if got != len(errs) || len(dirs) != len(errs) || err != errs[len(errs)-1] {
			t.Errorf("%s: %d tries in %d directories, %v", name, got, len(dirs), err)
		}
	}
}

// A start that fails because a port was taken ends then, not at the time limit, and it
// is known why it failed.
func TestPortTaken(t *testing.T) {
	requireFor(t, Config{Kerberos: true})
	for name, tc := range map[string]struct {
		cfg  Config
		call int // of the port finder: which of its ports is taken
	}{
		"KDC":               {Config{Kerberos: true}, 1},
		"NameNode":          {Config{}, 1},
		"separate NameNode": {Config{HA: true, SeparateNameNodes: true}, 1},
		"DataNode":          {Config{DataNodes: 1, Separate: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			begin := time.Now()
			c, err := startOnce(t.TempDir(), tc.cfg, func(n int) ([]reservedPort, error) {
				ports, err := reservePorts(n)
				if calls++; calls == tc.call && err == nil {
					var l net.Listener
					if l, err = net.Listen("tcp", fmt.Sprintf(":%d", ports[0].port)); err == nil {
						t.Cleanup(func() { _ = l.Close() })
					}
				}
				return ports, err
			})
			if err == nil {
				c.stop()
				t.Fatal("it started")
			}
			if !errors.Is(err, errPortTaken) || time.Since(begin) > commandTimeout {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		})
	}
}
