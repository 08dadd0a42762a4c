package hadoop

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aibox/internal/hdfstest"
	"aibox/reader/source/internal/fsys"
)

// TestHDFSZones checks that files in encryption zones are read and written as Hadoop does it, with
// a real KMS.
func TestHDFSZones(t *testing.T) {
	t.Parallel()
	z := &zonesTest{c: hdfstest.Shared(t, "zones", hdfstest.Config{DataNodes: 3, KMS: true,
		Conf: map[string]string{"dfs.blocksize": "1048576"}})}
	z.c.Encrypt(t, "/zone", "clicks")
	t.Run("Read", z.read)
	t.Run("ReadAt", z.readAt)
	t.Run("ReplicaCorrupted", z.replicaCorrupted)
	t.Run("Write", func(t *testing.T) { z.write(t, Options{}) })
	t.Run("Leftover", z.leftover)
	t.Run("Coded", z.coded)
	t.Run("Refused", z.refused)
	t.Run("FailOver", z.failOver)
	t.Run("Asked", z.asked)
	t.Run("WrongAddress", z.wrongAddress)
	t.Run("NoSuchKey", z.noSuchKey)
	t.Run("KMSDown", z.kmsDown)
}

// TestHDFSZonesKerberos checks that a KMS identifies users by their Kerberos tickets.
func TestHDFSZonesKerberos(t *testing.T) {
	t.Parallel()
	z := &zonesTest{c: hdfstest.Shared(t, "zones-kerberos", hdfstest.Config{DataNodes: 1, KMS: true, Kerberos: true,
		Conf: map[string]string{"dfs.blocksize": "1048576", "hadoop.security.key.default.bitlength": "256"}})}
	z.c.Encrypt(t, "/zone", "clicks")
	who := func(name string) Options {
		return Options{ConfDir: z.c.ConfDir(), KerberosPrincipal: name + "@" + hdfstest.Realm,
			KerberosKeytab: z.c.KDC().Keytab(t, name, time.Hour), Krb5Conf: z.c.KDC().Krb5Conf()}
	}
	z.c.Mkdir(t, "/zone/out", 0o777)
	z.write(t, who("alice"))
	alice, _ := hdfsSources(t, who("alice"))
	f := mustExpand(t, alice, z.c.URI("/zone/out/block"))[0]
	var wg sync.WaitGroup
	for offset := range int64(8) { // logins at the same time
		wg.Go(func() { wantBytes(t, alice, f, offset, logText(80_000)[:f.Size]) })
	}
	wg.Wait()
	s, _ := hdfsSources(t, who("mallory"))
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{z.c.URI("/zone/out/17")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, `"clicks"`, "User:mallory not allowed", "DECRYPT_EEK", "kms-acls.xml")

	// The key of the KMS is another one than it has in its key table.
	z.c.KDC().Keytab(t, "HTTP/localhost", time.Hour)
	s, _ = hdfsSources(t, who("alice"))
	_, err = s.Expand(context.Background(), []string{z.c.URI("/zone/out/17")})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, `"clicks"`, "the KMS refused the Kerberos login")
}

type zonesTest struct{ c *hdfstest.Cluster }

func (z *zonesTest) put(t *testing.T, path string, text []byte) string {
	t.Helper()
	z.c.PutBytes(t, text, path, hdfstest.PutOptions{})
	return z.c.URI(path)
}

// through are Options with which the KMS of a URI is asked.
func (z *zonesTest) through(t *testing.T, uri string) Options {
	t.Helper()
	return Options{ConfDir: z.c.ConfDirWith(t, map[string]string{"dfs.encryption.key.provider.uri": uri, "dfs.client.ignore.namenode.default.kms.uri": "true"})}
}

func (z *zonesTest) read(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(100_000) // about 4 MB in blocks of 1 MiB
	f := mustExpand(t, s, z.put(t, "/zone/a", text))[0]
	const block = 1 << 20
	var wg sync.WaitGroup
	for _, offset := range []int64{0, 1, 15, 16, 17, block - 1, block, block + 1, 2*block + 777, f.Size - 1, f.Size} {
		wg.Go(func() { wantBytes(t, s, f, offset, text) })
	}
	wg.Wait()
	// What is stored is not the text.
	raw := mustExpand(t, s, z.c.URI("/.reserved/raw/zone/a"))[0]
	if stored, err := readRange(context.Background(), s, raw, 0); err != nil || len(stored) != len(text) || stored[:100] == string(text[:100]) {
		t.Errorf("the stored bytes: %d of %d, %v", len(stored), len(text), err)
	}
	wantBytes(t, s, mustExpand(t, s, z.put(t, "/zone/empty", nil))[0], 0, nil)
}

func (z *zonesTest) readAt(t *testing.T) {
	s, _ := hdfsSources(t, Options{})
	text := logText(100_000)
	r, err := s.OpenAt(context.Background(), mustExpand(t, s, z.put(t, "/zone/at", text))[0])
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for range 50 {
				off := rng.IntN(len(text))
				want := text[off:min(len(text), off+1+rng.IntN(5000))]
				got := make([]byte, len(want))
				if _, err := r.ReadAt(got, int64(off)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes at %d: %v", len(want), off, err)
				}
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Reading goes on with another replica in the middle of a block.
func (z *zonesTest) replicaCorrupted(t *testing.T) {
	text := logText(100_000)
	uri := z.put(t, "/zone/corrupted", text)
	for replica := range 2 {
		z.c.CorruptReplica(t, "/zone/corrupted", replica, int64(replica)<<20+500_001)
	}
	s, log := hdfsSources(t, Options{})
	f := mustExpand(t, s, uri)[0]
	for range 4 {
		wantBytes(t, s, f, 3, text)
	}
	if !strings.Contains(log.String(), "a replica is bad") {
		t.Error("no replica was found to be bad")
	}
}

// What is written here, Hadoop reads, and what is in no zone stays as it is.
func (z *zonesTest) write(t *testing.T, opts Options) {
	s, _ := hdfsSources(t, opts)
	text := logText(80_000)
	for name, size := range map[string]int{"0": 0, "1": 1, "17": 17, "block": 1 << 20, "2 blocks and more": 2<<20 + 4321} {
		for _, dir := range []string{"/zone/out/", "/no-zone/"} {
			if dir == "/no-zone/" && opts.Krb5Conf != "" {
				continue // where only the cluster's user may write
			}
			w, err := s.Create(context.Background(), z.c.URI(dir+name))
			if err == nil {
				_, err = w.Write(text[:size])
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Errorf("%s%s: %v", dir, name, err)
				continue
			}
			local := filepath.Join(t.TempDir(), "f")
			z.c.Shell(t, "-get", dir+name, local)
			if got, err := os.ReadFile(local); err != nil || !bytes.Equal(got, text[:size]) {
				t.Errorf("%s%s: Hadoop reads %d bytes of %d, %v", dir, name, len(got), size, err)
			}
			wantBytes(t, s, mustExpand(t, s, z.c.URI(dir+name))[0], int64(size/3), text[:size])
		}
	}
	for _, name := range z.c.List(t, "/zone/out") {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s is left", name)
		}
	}
}

// A file may be both encrypted and erasure coded.
func (z *zonesTest) coded(t *testing.T) {
	z.c.Encrypt(t, "/coded-zone", "clicks")
	z.c.ErasureCode(t, "/coded-zone", "XOR-2-1-1024k")
	text := logText(100_000)
	local := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(local, text, 0o644); err != nil {
		t.Fatal(err)
	}
	z.c.Shell(t, "-put", local, "/coded-zone/a")
	s, _ := hdfsSources(t, Options{})
	f := mustExpand(t, s, z.c.URI("/coded-zone/a"))[0]
	for _, offset := range []int64{0, 17, 1<<20 - 1, 1<<20 + 5, 2<<20 + 1} {
		wantBytes(t, s, f, offset, text)
	}
	w, err := s.Create(context.Background(), z.c.URI("/coded-zone/b"))
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, s, mustExpand(t, s, z.c.URI("/coded-zone/b"))[0], 3, text)
}

// A NameNode that is asked to create a file that is open says so, by which files of killed uploads are
// found, and not that the request knows nothing of zones.
func (z *zonesTest) leftover(t *testing.T) {
	const open = "/zone/left/.e.0123456789ab.aibox.tmp"
	z.c.OpenForWriting(t, open, 1000)
	defer z.c.CloseFile(t, open)
	s, _ := hdfsSources(t, Options{RetryMs: NoRetry})
	c, _, err := s.resolve(z.c.URI(open))
	if err != nil {
		t.Fatal(err)
	}
	err = c.do(context.Background(), "create", open, func(s *session) error {
		defaults, err := s.client.ServerDefaults()
		if err == nil {
			_, err = s.create(open, defaults, fsys.Perm)
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "AlreadyBeingCreatedException") {
		t.Error(err)
	}
}

func (z *zonesTest) refused(t *testing.T) {
	uri := z.put(t, "/zone/refused/a", []byte("secret"))
	z.c.Mkdir(t, "/zone/refused/out", 0o777)
	s, _ := hdfsSources(t, Options{User: "bob"})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{uri})
	wantError(t, err, fsys.ErrPermission, atOnce, begin, uri, `"clicks"`, "/kms", "User:bob not allowed", "DECRYPT_EEK", "kms-acls.xml")
	_, err = s.Create(context.Background(), z.c.URI("/zone/refused/out/b"))
	wantError(t, err, fsys.ErrPermission, atOnce, begin, "/zone/refused/out/b", "User:bob not allowed", "DECRYPT_EEK")
	if names := z.c.List(t, "/zone/refused/out"); len(names) > 0 {
		t.Errorf("%q are left", names)
	}
}

// A KMS at which nothing listens is passed over.
func (z *zonesTest) failOver(t *testing.T) {
	text := logText(100)
	uri := z.put(t, "/zone/fail-over", text)
	opts := z.through(t, z.c.KMSURI("127.0.0.9;"))
	opts.RetryMs = NoRetry
	s, _ := hdfsSources(t, opts)
	wantBytes(t, s, mustExpand(t, s, uri)[0], 5, text)
}

// The KMS is asked for the key of a file once, however many blocks are read.
func (z *zonesTest) asked(t *testing.T) {
	text := logText(100_000)
	uri := z.put(t, "/zone/asked", text)
	to, err := url.Parse(strings.TrimSuffix(strings.Replace(z.c.KMSURI(""), "kms://http@", "http://", 1), "/kms"))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	s, _ := hdfsSources(t, z.through(t, strings.Replace(proxy.URL, "http://", "kms://http@", 1)+"/kms"))
	f := mustExpand(t, s, uri, z.c.URI("/zone/a"))[0]
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times when files with the same key were listed", n)
	}
	wantBytes(t, s, f, 5, text)
	r, err := s.OpenAt(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	for off := int64(0); off < f.Size; off += 100_000 {
		if _, err := r.ReadAt(make([]byte, 10), off); err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times when the file was listed, read and read at random", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func (z *zonesTest) wrongAddress(t *testing.T) {
	uri := z.put(t, "/zone/wrong-address", []byte("x"))
	for provider, want := range map[string]string{
		strings.TrimSuffix(z.c.KMSURI(""), "/kms") + "/cms": "its path",
		"kms://localhost": "kms://https@host1;host2:9600/kms",
		"jceks://file/x":  `"jceks://file/x", which is not a KMS`,
		"":                "no KMS is configured",
	} {
		s, _ := hdfsSources(t, z.through(t, provider))
		begin := time.Now()
		_, err := s.Expand(context.Background(), []string{uri})
		wantError(t, err, fsys.ErrConfig, atOnce, begin, uri, want)
	}
	// The NameNode's KMS is asked, although the configuration names another one.
	s, _ := hdfsSources(t, Options{ConfDir: z.c.ConfDirWith(t, map[string]string{"hadoop.security.key.provider.path": "kms://http@nowhere:1/kms"})})
	wantBytes(t, s, mustExpand(t, s, uri)[0], 0, []byte("x"))
}

func (z *zonesTest) noSuchKey(t *testing.T) {
	z.c.Encrypt(t, "/zone-of-deleted-key", "deleted")
	uri := z.put(t, "/zone-of-deleted-key/a", []byte("x"))
	z.c.DeleteKey(t, "deleted")
	s, _ := hdfsSources(t, Options{})
	begin := time.Now()
	_, err := s.Expand(context.Background(), []string{uri})
	wantError(t, err, fsys.ErrFailed, atOnce, begin, uri, `"deleted"`, "not found", "was the key deleted")
}

// A KMS that is down, or hangs, is waited for.
func (z *zonesTest) kmsDown(t *testing.T) {
	text := logText(100)
	uri := z.put(t, "/zone/down", text)
	s, _ := hdfsSources(t, Options{TimeoutMs: 2000, RetryMs: NoRetry})
	f := mustExpand(t, s, uri)[0]
	z.c.HangKMS(t)
	begin := time.Now()
	_, err := readRange(context.Background(), s, f, 0)
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, uri, `"clicks"`, "no answer within 2s", "is the KMS running")
	z.c.KillKMS()
	_, err = readRange(context.Background(), s, f, 0)
	wantError(t, err, fsys.ErrUnavailable, atOnce, begin, uri, "connection refused", "is the KMS running")
	patient, log := hdfsSources(t, Options{})
	read := make(chan string)
	go func() {
		got, err := readRange(context.Background(), patient, f, 0)
		if err != nil {
			got = err.Error()
		}
		read <- got
	}()
	until(t, "the read is tried again", func() bool { return strings.Contains(log.String(), "trying again") })
	if err := z.c.StartKMS(); err != nil {
		t.Error(err)
	}
	if got := <-read; got != string(text) {
		t.Error(got)
	}
}
