package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// DataNodes of the secured cluster, by what protection they insist on.
const (
	nodeAuthentication = iota
	nodeIntegrity
	nodePrivacyAES
	nodePrivacyRC4
)

// kerberosCluster is secured by a real KDC. Each DataNode insists on another
// level of data transfer protection.
func kerberosCluster(t *testing.T) *hdfstest.Cluster {
	const key = "dfs.data.transfer.protection"
	return hdfstest.Shared(t, "kerberos", hdfstest.Config{
		DataNodes: 4,
		Kerberos:  true,
		DataNodeConf: []map[string]string{
			nodeAuthentication: {key: "authentication"},
			nodeIntegrity:      {key: "integrity"},
			nodePrivacyAES:     {key: "privacy", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"},
			nodePrivacyRC4:     {key: "privacy"},
		},
		Conf: map[string]string{"dfs.encrypt.data.transfer.cipher.suites": ""},
	})
}

// TestHDFSKerberos runs against one secured cluster. Its subtests run at the
// same time, since some wait for tickets to expire.
func TestHDFSKerberos(t *testing.T) {
	t.Parallel()
	c := kerberosCluster(t)
	k := &kerberosTest{c: c, text: logText(60_000)}
	k.keytab = c.KDC().Keytab(t, "alice", time.Hour)
	k.put(t, "/secure/a", nodeAuthentication)
	t.Run("in parallel", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"KeytabExpires":  func(t *testing.T) { k.keytabExpires(t, "shortlived", false) },
			"KeytabRotated":  func(t *testing.T) { k.keytabExpires(t, "rotated", true) },
			"CacheExpires":   k.cacheExpires,
			"HalfCache":      k.halfCache,
			"FewKeys":        k.fewKeys,
			"KeysCopied":     k.keysCopied,
			"NoKDC":          k.noKDC,
			"HostNames":      k.hostNames,
			"WrongKeytab":    k.wrongKeytab,
			"NoCache":        k.noCache,
			"NoKerberos":     k.noKerberos,
			"Authentication": k.authentication,
			"PrivacyAES":     k.privacyAES,
			"PrivacyRC4":     k.privacyRC4,
			"Integrity":      k.integrity,
			"Unset":          k.unset,
			"BlackHole":      k.blackHole,
			"Write":          k.write,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
}

type kerberosTest struct {
	c      *hdfstest.Cluster
	keytab string // of alice
	text   []byte
}

func (k *kerberosTest) put(t *testing.T, path string, node int) {
	t.Helper()
	k.c.PutBytes(t, k.text, path, hdfstest.PutOptions{Replication: 1, DataNode: 1 + node})
}

// alice reads with her key table.
func (k *kerberosTest) alice() Options {
	return Options{
		ConfDir:           k.c.ConfDir(),
		KerberosPrincipal: "alice@" + hdfstest.Realm,
		KerberosKeytab:    k.keytab,
		Krb5Conf:          k.c.KDC().Krb5Conf(),
	}
}

// reconnect ends the connections to the NameNode, so that the next operation
// must log in.
func reconnect(s *testSources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clusters {
		c.dropIdle()
	}
}

// clockSkew of the test KDC's krb5.conf: so much longer do tickets work.
const clockSkew = 3 * time.Second

// A key table's tickets are renewed while the job runs, also if it has got a new key meanwhile.
func (k *kerberosTest) keytabExpires(t *testing.T, user string, rotate bool) {
	const life = 15 * time.Second
	opts := k.alice()
	opts.KerberosPrincipal = user // in the default realm
	opts.KerberosKeytab = k.c.KDC().Keytab(t, user, life)
	s, _ := hdfsSources(t, opts)
	f := mustExpand(t, s, k.c.URI("/secure/a"))[0]
	r, err := s.OpenRange(context.Background(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1000)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if rotate {
		if err := os.Rename(k.c.KDC().Keytab(t, user, life), opts.KerberosKeytab); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(life + clockSkew + time.Second)
	reconnect(s)
	wantBytes(t, s, mustExpand(t, s, k.c.URI("/secure/a"))[0], 0, k.text)
	rest, err := io.ReadAll(r)
	if err != nil || string(head)+string(rest) != string(k.text) {
		t.Errorf("the reader held meanwhile: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A ticket cache that has expired works again after kinit.
func (k *kerberosTest) cacheExpires(t *testing.T) {
	const retry = 4 * time.Second
	cache := filepath.Join(t.TempDir(), "cache")
	kinit := func(life time.Duration) { k.c.KDC().Kinit(t, "alice", k.keytab, cache, life) }
	opts := Options{ConfDir: k.c.ConfDir(), KerberosCCache: "FILE:" + cache, Krb5Conf: k.c.KDC().Krb5Conf(), RetryMs: int(retry.Milliseconds())}
	s, _ := hdfsSources(t, opts)
	patient := opts
	patient.RetryMs = longRetryMs
	later, _ := hdfsSources(t, patient)
	var f fsys.File
	contact := func(s *testSources) error {
		files, err := s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
		if err != nil {
			return err
		}
		f = files[0]
		got, err := readRange(context.Background(), s, f, 0)
		if err == nil && got != string(k.text) {
			t.Fatal("bytes differ")
		}
		return err
	}
	var end time.Time // of the ticket
	for life := 5 * time.Second; ; life *= 2 {
		begin := time.Now()
		kinit(life)
		end = time.Now().Add(life)
		err := contact(s)
		if err == nil {
			err = contact(later)
		}
		if err == nil {
			break
		}
		if time.Since(begin) < retry { // else the machine is busy; the ticket may have expired
			t.Fatal(err)
		}
	}

	time.Sleep(time.Until(end.Add(time.Second)))
	reconnect(s)
	reconnect(later)
	begin := time.Now()
	_, err := readRange(context.Background(), s, f, 0)
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "expired", cache, "kinit")

	var wg sync.WaitGroup
	wg.Go(func() { wantBytes(t, later, f, 0, k.text) }) // retried until kinit has run
	time.Sleep(300 * time.Millisecond)
	kinit(time.Hour)
	wg.Wait()

	// At the start an expired cache is an error at once.
	kinit(time.Second)
	time.Sleep(1200 * time.Millisecond)
	fresh, _ := hdfsSources(t, opts)
	begin = time.Now()
	_, err = fresh.Expand(context.Background(), []string{k.c.URI("/secure/a")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "expired", cache, "kinit")
}

// A cache of which a part is missing, as while kinit writes it, is read again.
func (k *kerberosTest) halfCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	k.c.KDC().Kinit(t, "alice", k.keytab, cache, time.Hour)
	whole, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{ConfDir: k.c.ConfDir(), KerberosCCache: cache, Krb5Conf: k.c.KDC().Krb5Conf(), RetryMs: 1}
	s, _ := hdfsSources(t, opts)
	f := mustExpand(t, s, k.c.URI("/secure/a"))[0]
	for n := 0; n < len(whole); n += 1 + n/4 {
		if err := os.WriteFile(cache, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		reconnect(s)
		begin := time.Now()
		_, err := readRange(context.Background(), s, f, 0)
		wantError(t, err, fsys.ErrPermission, atOnce, begin, cache, "kinit")
	}
	opts.RetryMs = longRetryMs
	later, _ := hdfsSources(t, opts)
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = os.WriteFile(cache, whole, 0o600) // if it fails, the test does
	}()
	c, _, err := later.resolve(f.URI)
	if err != nil {
		t.Fatal(err)
	}
	c.reached.Store(true)
	wantBytes(t, later, f, 0, k.text)
}

// editKeys writes a key table with other entries.
func editKeys(t *testing.T, from string, edit func(*keytab.Keytab)) string {
	t.Helper()
	keys, err := keytab.Load(from)
	if err != nil {
		t.Fatal(err)
	}
	edit(keys)
	data, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "edited.keytab")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A key table need not have a key of the type that the KDC prefers.
func (k *kerberosTest) fewKeys(t *testing.T) {
	opts := k.alice()
	opts.KerberosKeytab = editKeys(t, k.keytab, func(keys *keytab.Keytab) {
		all := keys.Entries
		keys.Entries = all[:0]
		for _, e := range all {
			if e.Key.KeyType == etypeID.AES128_CTS_HMAC_SHA1_96 {
				keys.Entries = append(keys.Entries, e)
			}
		}
	})
	k.reads(t, "/secure/a", opts)
}

// Of an old and a new key, the one with the higher version counts, also where both were copied at
// the same time.
func (k *kerberosTest) keysCopied(t *testing.T) {
	old, err := keytab.Load(k.c.KDC().Keytab(t, "carol", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	opts := k.alice()
	opts.KerberosPrincipal = "carol"
	opts.KerberosKeytab = editKeys(t, k.c.KDC().Keytab(t, "carol", time.Hour), func(keys *keytab.Keytab) {
		keys.Entries = append(old.Entries, keys.Entries...)
		for i := range keys.Entries {
			keys.Entries[i].Timestamp = time.Now()
		}
	})
	k.reads(t, "/secure/a", opts)
}

// A KDC that does not answer is named, also where the cache has a valid ticket, but none for the NameNode.
func (k *kerberosTest) noKDC(t *testing.T) {
	dir := t.TempDir()
	cache, conf := filepath.Join(dir, "cache"), filepath.Join(dir, "krb5.conf")
	k.c.KDC().Kinit(t, "alice", k.keytab, cache, time.Hour)
	realm := hdfstest.Realm
	text := "[libdefaults]\n default_realm = " + realm + "\n[realms]\n " + realm + " = {\n  kdc = " + refusing(t) + "\n }\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []Options{
		{ConfDir: k.c.ConfDir(), KerberosCCache: cache, Krb5Conf: conf, RetryMs: 10},
		{ConfDir: k.c.ConfDir(), KerberosPrincipal: "alice", KerberosKeytab: k.keytab, Krb5Conf: conf, RetryMs: 10},
	} {
		s, _ := hdfsSources(t, opts)
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
		wantError(t, err, fsys.ErrUnavailable, atOnce, begin, "KDC unavailable", "is the KDC of krb5.conf running?")
	}
}

// The NameNode's principal has the name of its address, in lower case.
func (k *kerberosTest) hostNames(t *testing.T) {
	_, port, err := net.SplitHostPort(k.c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "LocalHost"} {
		s, _ := hdfsSources(t, k.alice())
		uri := "hdfs://" + net.JoinHostPort(host, port) + "/secure/a"
		wantBytes(t, s, mustExpand(t, s, uri)[0], 0, k.text)
	}
	opts := k.alice()
	opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.namenode.kerberos.principal": "nn/_HOST@" + hdfstest.Realm})
	s, _ := hdfsSources(t, opts)
	begin := time.Now()
	_, err = s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
	wantError(t, err, fsys.ErrConfig, atOnce, begin, "nn/localhost", "dfs.namenode.kerberos.principal")
}

func (k *kerberosTest) wrongKeytab(t *testing.T) {
	old := k.c.KDC().Keytab(t, "bob", time.Hour)
	k.c.KDC().Keytab(t, "bob", time.Hour) // a new key: the old one is wrong
	for _, tc := range []struct {
		principal, keytab, words string
		kind                     error
	}{
		{"bob", old, "not, or no longer, that of the principal", fsys.ErrPermission},
		{"alice", old, "holds no key of this principal", fsys.ErrPermission},
		{"nobody", old, "nobody@" + hdfstest.Realm, fsys.ErrPermission},
		{"bob", "/nonexistent.keytab", "/nonexistent.keytab", fsys.ErrConfig},
	} {
		opts := k.alice()
		opts.KerberosPrincipal, opts.KerberosKeytab = tc.principal, tc.keytab
		s, _ := hdfsSources(t, opts)
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
		wantError(t, err, tc.kind, atOnce, begin, tc.words, k.c.URI("/secure/a"))
	}
}

func (k *kerberosTest) noCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "none")
	s, _ := hdfsSources(t, Options{ConfDir: k.c.ConfDir(), KerberosCCache: cache, Krb5Conf: k.c.KDC().Krb5Conf()})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
	wantError(t, err, fsys.ErrConfig, atOnce, begin, cache, "kinit")
	s, _ = hdfsSources(t, Options{ConfDir: k.c.ConfDir(), KerberosCCache: "KEYRING:persistent:0", Krb5Conf: k.c.KDC().Krb5Conf()})
	_, err = s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "KEYRING", "FILE:")
}

// Without Kerberos settings the NameNode refuses; the reason is named.
func (k *kerberosTest) noKerberos(t *testing.T) {
	s, _ := hdfsSources(t, Options{ConfDir: k.c.ConfDirWith(t, map[string]string{"hadoop.security.authentication": ""})})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{k.c.URI("/secure/a")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "Kerberos")
}

func (k *kerberosTest) authentication(t *testing.T) {
	s, _ := hdfsSources(t, k.alice())
	wantBytes(t, s, mustExpand(t, s, k.c.URI("/secure/a"))[0], 1000, k.text)

	// Without hdfs-site.xml's principal, by the usual one.
	opts := k.alice()
	opts.ConfDir = k.c.ConfDirWith(t, map[string]string{
		"hadoop.security.authentication": "", "dfs.namenode.kerberos.principal": "", "dfs.data.transfer.protection": "authentication"})
	s, _ = hdfsSources(t, opts)
	wantBytes(t, s, mustExpand(t, s, k.c.URI("/secure/a"))[0], 0, k.text)

	// Alice may not read everything.
	k.put(t, "/secure/private", nodeAuthentication)
	k.c.Chmod(t, "/secure/private", 0o600)
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{k.c.URI("/secure/private")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "user=alice")
}

func (k *kerberosTest) privacyAES(t *testing.T) {
	k.put(t, "/aes/a", nodePrivacyAES)
	for _, protection := range []string{"authentication,integrity,privacy", "privacy", "integrity,privacy"} {
		opts := k.alice()
		opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.data.transfer.protection": protection})
		s, _ := hdfsSources(t, opts)
		f := mustExpand(t, s, k.c.URI("/aes/a"))[0]
		begin := time.Now()
		wantBytes(t, s, f, 0, k.text)
		t.Logf("%s: %.0f MB/s with the connection", protection, float64(f.Size)/1e6/time.Since(begin).Seconds())
	}
	// Bad bytes are found under encryption too.
	k.c.CorruptReplica(t, "/aes/a", 0, 600_000)
	s, _ := hdfsSources(t, k.alice())
	got, err := readRange(context.Background(), s, mustExpand(t, s, k.c.URI("/aes/a"))[0], 0)
	var corrupt *fsys.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != 600_000/512*512 || got != string(k.text[:corrupt.Offset]) {
		t.Errorf("corrupted: %d bytes, %v", len(got), err)
	}
}

func (k *kerberosTest) refused(t *testing.T, path string, opts Options, kind error, words ...string) {
	t.Helper()
	s, _ := hdfsSources(t, opts)
	f := mustExpand(t, s, k.c.URI(path))[0]
	begin := time.Now()
	got, err := readRange(context.Background(), s, f, 0)
	wantError(t, err, kind, atOnce, begin, append(words, k.c.URI(path))...)
	if got != "" {
		t.Errorf("handed out %d bytes", len(got))
	}
}

// reads wants a file to be read whole, and from the middle.
func (k *kerberosTest) reads(t *testing.T, path string, opts Options) {
	t.Helper()
	s, _ := hdfsSources(t, opts)
	f := mustExpand(t, s, k.c.URI(path))[0]
	wantBytes(t, s, f, 0, k.text)
	wantBytes(t, s, f, 1<<20+12345, k.text)
}

func (k *kerberosTest) privacyRC4(t *testing.T) {
	k.put(t, "/rc4/a", nodePrivacyRC4)
	k.reads(t, "/rc4/a", k.alice())
}

func (k *kerberosTest) integrity(t *testing.T) {
	k.put(t, "/int/a", nodeIntegrity)
	k.reads(t, "/int/a", k.alice())
	for _, protection := range []string{"integrity", "integrity,privacy"} {
		opts := k.alice()
		opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.data.transfer.protection": protection})
		k.reads(t, "/int/a", opts)
	}
	// The client asks for more than the DataNode offers.
	opts := k.alice()
	opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.data.transfer.protection": "privacy"})
	k.refused(t, "/secure/a", opts, fsys.ErrConfig, "dfs.data.transfer.protection")
}

// A client that knows nothing of the protection is told what to set.
func (k *kerberosTest) unset(t *testing.T) {
	opts := k.alice()
	opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.data.transfer.protection": ""})
	k.refused(t, "/secure/a", opts, fsys.ErrConfig, "dfs.data.transfer.protection")
}

// Of a pair, the NameNode listed first swallows everything; it is asked once.
func (k *kerberosTest) blackHole(t *testing.T) {
	hole, asked := blackHole(t)
	opts := k.alice()
	opts.TimeoutMs, opts.RetryMs = 15_000, NoRetry
	opts.ConfDir = k.c.ConfDirWith(t, map[string]string{
		"dfs.nameservices": "pair", "dfs.ha.namenodes.pair": "nn1,nn2",
		"dfs.namenode.rpc-address.pair.nn1": hole, "dfs.namenode.rpc-address.pair.nn2": k.c.Addr(),
	})
	s, log := hdfsSources(t, opts)
	for range 3 {
		wantBytes(t, s, mustExpand(t, s, "hdfs://pair/secure/a")[0], 0, k.text)
		reconnect(s)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the black hole was asked %d times:\n%s", n, log)
	}
	if !strings.Contains(log.String(), "another NameNode is used") {
		t.Error("the change of the NameNode was not logged")
	}
}

// Blocks are written with every level of protection, also where the client's
// configuration lists several.
func (k *kerberosTest) write(t *testing.T) {
	ctx := context.Background()
	var nodes []string // their addresses
	probe, _ := hdfsSources(t, k.alice())
	for node := range nodePrivacyRC4 + 1 {
		path := fmt.Sprintf("/where/%d", node)
		k.put(t, path, node)
		f := mustExpand(t, probe, k.c.URI(path))[0]
		c, p, err := probe.resolve(f.URI)
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&fileBlocks{c: c, f: f, path: p}).find(ctx, &retrier{c: c}, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, b.replicas[0].node)
	}
	k.c.Mkdir(t, "/written", 0o777)
	for _, tc := range []struct {
		node       int
		protection string
	}{
		{nodeAuthentication, "authentication,integrity,privacy"},
		{nodeIntegrity, "integrity,privacy"},
		{nodePrivacyAES, "integrity,privacy"},
		{nodePrivacyAES, "privacy"},
		{nodePrivacyRC4, "privacy"},
	} {
		opts := k.alice()
		opts.RetryMs = NoRetry
		opts.ConfDir = k.c.ConfDirWith(t, map[string]string{"dfs.data.transfer.protection": tc.protection})
		s, _ := hdfsSources(t, opts)
		uri := k.c.URI(fmt.Sprintf("/written/%d-%s", tc.node, tc.protection))
		c, _, err := s.resolve(uri)
		if err != nil {
			t.Fatal(err)
		}
		for i, node := range nodes {
			if i != tc.node { // so that the block is written without it
				c.nodes.recordFailure(node)
			}
		}
		writeBack(t, s, uri, k.text)
	}
}
