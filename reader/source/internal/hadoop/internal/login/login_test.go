package login

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

// Those who wait while a KDC does not answer do not ask it one after the other.
func TestSilentKDC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			time.Sleep(500 * time.Millisecond) // in which all others begin to wait
			_ = c.Close()
		}
	}()
	dir := t.TempDir()
	keys := keytab.New()
	if err := keys.AddEntry("alice", "A.TEST", "secret", time.Now(), 1, 18); err != nil {
		t.Fatal(err)
	}
	table, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	conf := "[libdefaults]\n default_realm = A.TEST\n udp_preference_limit = 1\n[realms]\n A.TEST = {\n  kdc = " + l.Addr().String() + "\n }\n"
	o := Options{Principal: "alice", Keytab: filepath.Join(dir, "keytab"), Krb5Conf: filepath.Join(dir, "krb5.conf")}
	if err := errors.Join(os.WriteFile(o.Keytab, table, 0o600), os.WriteFile(o.Krb5Conf, []byte(conf), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := New(o)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := k.Get("hdfs/nn"); !errors.Is(err, ErrKDC) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if n := asked.Load(); n > 5 { // it is asked twice, unless the machine is busy
		t.Errorf("the KDC was asked %d times", n)
	}
}

func TestCachePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "primary"), []byte("tktAbc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/a":                   "/a",
		"FILE:/a:b":            "/a:b",
		"DIR:" + dir:           dir + "/tktAbc",
		"DIR:/none":            "/none/tkt",
		"DIR::/run/tktX":       "/run/tktX",
		"KEYRING:persistent:0": "",
		"KCM:":                 "",
		"MEMORY:x":             "",
	} {
		if got, err := cachePath(name); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
