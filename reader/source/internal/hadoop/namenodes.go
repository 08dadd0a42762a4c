package hadoop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// nameNodes remembers which NameNode of a cluster answers. The library would begin
// each session with the first one of its list; so each session gets a list of only one
// NameNode, and this file decides which.
type nameNodes struct {
	addresses []string

	mu struct {
		sync.Mutex
		current int // the one that answered last
		// silent holds, for each NameNode, when it last did not answer in time.
		silent []silence
	}
}

type silence struct {
	at  time.Time
	err error
}

// silentFor is how long a NameNode that did not answer in time is asked only if no other one
// serves. With a time limit of 10 s, it then costs a quarter of the time that an operation waits
// for another one to become active.
const silentFor = 30 * time.Second

func (n *nameNodes) init(addresses []string) {
	n.addresses = addresses
	n.mu.silent = make([]silence, len(addresses))
}

// order lists the NameNodes in the order in which they are to be asked: first the one
// that answered last, then the others, and at the end those that were silent lately, with
// the oldest silence first.
func (n *nameNodes) order() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var first, last []int
	for k := range n.addresses {
		i := (n.mu.current + k) % len(n.addresses)
		if time.Since(n.mu.silent[i].at) < silentFor {
			last = append(last, i)
		} else {
			first = append(first, i)
		}
	}
	slices.SortStableFunc(last, func(a, b int) int { return n.mu.silent[a].at.Compare(n.mu.silent[b].at) })
	return append(first, last...)
}

// wasSilent reports whether a NameNode was silent lately.
func (n *nameNodes) wasSilent(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.mu.silent[i].at) < silentFor
}

// skipped returns the error of NameNode i if a retry skips it, because it has been silent since the
// operation began to fail, and asking it again would cost another time limit. It is skipped while
// another one answers as a standby, which may soon be active. After the time for retries, it is
// skipped if it was silent within the last time limit; otherwise it is asked once more, since it
// may serve again. A NameNode that was silent only before the operation began to fail is never
// skipped, so that every operation asks each one.
func (c *Cluster) skipped(i int, failing time.Time, standby bool) error {
	c.nameNodes.mu.Lock()
	defer c.nameNodes.mu.Unlock()
	s := c.nameNodes.mu.silent[i]
	age := time.Since(s.at)
	if failing.IsZero() || !s.at.After(failing) || age >= silentFor {
		return nil
	}
	if over := time.Since(failing) >= c.retry; over && age < c.timeout || !over && standby {
		return s.err
	}
	return nil
}

// answered records that NameNode i serves. It returns whether another one served before.
func (n *nameNodes) answered(i int) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed = n.mu.current != i
	n.mu.current, n.mu.silent[i] = i, silence{}
	return changed
}

// failed records an error of NameNode i; only time-outs count.
func (n *nameNodes) failed(i int, err error) {
	if isTimeout(err) {
		n.mu.Lock()
		n.mu.silent[i] = silence{time.Now(), err}
		n.mu.Unlock()
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// isStandby reports whether a NameNode answered that it is not the active one. The library returns
// the exception as text if it has no other NameNode.
func isStandby(err error) bool { return strings.Contains(err.Error(), "StandbyException") }

// noNameNodeError says why no NameNode serves.
type noNameNodeError struct {
	begin     time.Time // of the first call
	addresses []string
	errs      []error // one for each address
}

func (e *noNameNodeError) Error() string { return "no NameNode is available: " + e.reasons() }

func (e *noNameNodeError) reasons() string {
	var parts []string
	for i, err := range e.errs {
		parts = append(parts, fmt.Sprintf("%s: %v", e.addresses[i], err))
	}
	return strings.Join(parts, "; ")
}

func (e *noNameNodeError) Unwrap() []error { return e.errs }

// all reports whether every NameNode's error satisfies is.
func (e *noNameNodeError) all(is func(error) bool) bool {
	return !slices.ContainsFunc(e.errs, func(err error) bool { return !is(err) })
}

// isUnknownHost reports whether err says that a host name does not exist.
func isUnknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// newSession asks the NameNodes one after the other until one serves. In a retry of an operation
// that has been failing since failing, it skips some of them (see spare).
func (c *Cluster) newSession(ctx context.Context, failing time.Time) (*session, error) {
	failed := &noNameNodeError{begin: time.Now()}
	standby := false
	for _, i := range c.nameNodes.order() {
		address := c.nameNodes.addresses[i]
		err := c.skipped(i, failing, standby)
		if err == nil {
			var s *session
			s, err = c.connect(ctx, i)
			switch {
			case err == nil:
				level := slog.LevelWarn
				if !c.reached.Swap(true) && failed.all(isStandby) {
					level = slog.LevelInfo // nothing failed: the active NameNode is not the first of the list
				}
				if c.nameNodes.answered(i) && len(failed.errs) > 0 {
					c.log.Log(ctx, level, "HDFS: another NameNode is used from now on", "namenode", address, "reason", failed.reasons())
				}
				return s, nil
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.As(err, new(*loginError)):
				return nil, err // none of the NameNodes was asked
			}
			c.nameNodes.failed(i, err)
			standby = standby || isStandby(err)
		}
		failed.addresses = append(failed.addresses, address)
		failed.errs = append(failed.errs, err)
	}
	return nil, failed
}
