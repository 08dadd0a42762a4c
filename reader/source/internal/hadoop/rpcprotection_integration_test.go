package hadoop

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/hdfstest"
)

// TestHDFSRPCProtection checks that requests to a NameNode and its answers are signed or encrypted
// as hadoop.rpc.protection says.
func TestHDFSRPCProtection(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"authentication", "integrity", "authentication,privacy"} {
		t.Run(strings.ReplaceAll(level, ",", " or "), func(t *testing.T) { // a comma would divide the names of directories
			c := hdfstest.Start(t, hdfstest.Config{DataNodes: 1, Kerberos: true,
				Conf:         map[string]string{"hadoop.rpc.protection": level},
				DataNodeConf: []map[string]string{{"dfs.data.transfer.protection": "authentication"}}})
			k := &kerberosTest{c: c, text: logText(60_000)}
			k.keytab = c.KDC().Keytab(t, "alice", time.Hour)
			k.put(t, "/secret/file", nodeAuthentication)
			c.Mkdir(t, "/written", 0o777)

			requests := captureTraffic(t, strings.TrimPrefix(c.URI(""), "hdfs://"))
			s, _ := hdfsSources(t, k.alice())
			uri := func(path string) string { return "hdfs://" + requests.address + path }
			f := mustExpand(t, s, uri("/secret/file"))[0]
			wantBytes(t, s, f, 12345, k.text)
			writeBack(t, s, uri("/written/secret"), k.text)

			requests.Lock()
			defer requests.Unlock()
			if encrypted := strings.Contains(level, "privacy"); bytes.Contains(requests.heard, []byte("secret")) == encrypted {
				t.Errorf("names of files are encrypted: %v, want %v", !encrypted, encrypted)
			}
			// A token begins with its identity, the flag of encryption, and a byte that fills it up.
			token := map[string][]byte{"integrity": {5, 4, 0, 255}, "authentication,privacy": {5, 4, 2, 255}}[level]
			if n := bytes.Count(requests.heard, token); token != nil && n < 10 {
				t.Errorf("%d requests are protected", n)
			}
		})
	}
}

// capturedTraffic is what clients send to an address by way of another one.
type capturedTraffic struct {
	address string
	sync.Mutex
	heard []byte
}

func (o *capturedTraffic) Write(b []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	o.heard = append(o.heard, b...)
	return len(b), nil
}

func captureTraffic(t *testing.T, address string) *capturedTraffic {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	o := &capturedTraffic{address: "localhost:" + port}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				_, _ = io.Copy(io.MultiWriter(server, o), client)
				_ = server.Close()
			}()
			go func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
		}
	}()
	return o
}
