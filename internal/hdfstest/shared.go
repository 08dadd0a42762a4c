package hdfstest

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// shared clusters by name.
var shared struct {
	sync.Mutex
	clusters map[string]*sharedCluster
}

type sharedCluster struct {
	once sync.Once
	dir  string
	c    *Cluster
	err  error
}

// Shared returns the cluster of that name, which the first caller starts. It
// lives until Main ends; callers use directories of their own in it and leave
// its servers running.
func Shared(t testing.TB, name string, cfg Config) *Cluster {
	t.Helper()
	requireFor(t, cfg)
	shared.Lock()
	if shared.clusters == nil {
		shared.clusters = make(map[string]*sharedCluster)
	}
	s := shared.clusters[name]
	if s == nil {
		s = &sharedCluster{}
		shared.clusters[name] = s
	}
	shared.Unlock()
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "hdfstest-"); s.err == nil {
			s.c, s.err = start(s.dir, cfg)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.c
}

// Main runs the tests of a package, ends the shared clusters and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main without the exit, for a package with more to do before it: it returns the exit
// status.
func Run(m *testing.M) int {
	begin := time.Now()
	code := m.Run()
	shared.Lock()
	for name, s := range shared.clusters {
		if s.c != nil {
			s.c.stop()
			fmt.Printf("HDFS cluster %s: started in %.1f s, ended after %.1f s of tests\n",
				name, s.c.startup.Seconds(), time.Since(begin).Seconds())
		}
		if s.dir != "" {
			if err := os.RemoveAll(s.dir); err != nil {
				fmt.Println(err)
			}
		}
	}
	shared.Unlock()
	return code
}
