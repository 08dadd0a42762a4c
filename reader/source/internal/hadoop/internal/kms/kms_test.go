package kms

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var sealed = Sealed{Key: "clicks", Version: "clicks@0", IV: []byte("0123456789abcdef"), Data: []byte{0xfb, 0xef, 0xff}}

// answering is the address of a server that gives an answer, after so long.
func answering(t *testing.T, status int, answer string, after time.Duration) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var body map[string]string
		decode := func(name string) string {
			b, err := base64.RawURLEncoding.DecodeString(body[name])
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return string(b)
		}
		sent, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(sent, &body)
		}
		if err != nil || r.Method != "POST" || r.URL.Path != "/kms/v1/keyversion/clicks@0/_eek" || r.URL.Query().Get("eek_op") != "decrypt" ||
			r.Header.Get("Content-Type") != "application/json" || r.URL.Query().Get("user.name") != "alice" ||
			body["name"] != "clicks" || decode("iv") != string(sealed.IV) || decode("material") != string(sealed.Data) {
			t.Errorf("asked %s %s %q, %v", r.Method, r.URL, sent, err)
		}
		select {
		case <-time.After(after):
		case <-r.Context().Done():
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), asked
}

func servers(t *testing.T, scheme string, addresses ...string) *Servers {
	t.Helper()
	s, err := New("kms://"+scheme+"@"+strings.Join(addresses, ";")+"/kms", time.Second, func(_ context.Context, req *http.Request) error {
		req.URL.RawQuery += "&user.name=alice"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const good = `{"material": "a-_8", "name": "clicks", "versionName": "EK"}`

// Another server is asked where one has failed, and asked first from then on, but not where one has refused.
func TestFailOver(t *testing.T) {
	for name, bad := range map[string]struct {
		status int
		body   string
		after  time.Duration
	}{
		"breaks":     {500, `{"RemoteException": {"message": "disk", "exception": "IOException"}}`, 0},
		"another":    {200, "<html>", 0},
		"no key":     {200, "{}", 0},
		"not a KMS":  {404, "", 0},
		"no login":   {403, "<html>", 0},
		"is silent":  {200, good, time.Minute},
		"is too new": {200, `{"material": "***"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			failing, asked := answering(t, bad.status, bad.body, bad.after)
			working, _ := answering(t, 200, good, 0)
			s := servers(t, "http", failing, working)
			for range 2 {
				if key, err := s.Unseal(context.Background(), sealed); err != nil || string(key) != "k\xef\xfc" {
					t.Errorf("key %q, %v", key, err)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the one that failed was asked %d times", n)
			}
			if _, err := servers(t, "http", failing).Unseal(context.Background(), sealed); err == nil || !strings.Contains(err.Error(), "/kms: ") {
				t.Errorf("%v", err)
			}
		})
	}
	refusing, _ := answering(t, 403, `{"RemoteException": {"message": "not alice", "exception": "AuthorizationException"}}`, 0)
	working, asked := answering(t, 200, good, 0)
	_, err := servers(t, "http", refusing, working).Unseal(context.Background(), sealed)
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != 403 || answer.Message != "not alice" || asked.Load() != 0 {
		t.Errorf("%v, and the other one was asked %d times", err, asked.Load())
	}
}

// An idle connection that the server has closed is no failure.
func TestIdleConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, good)
	}))
	defer server.Close()
	s := servers(t, "http", server.Listener.Addr().String())
	for range 3 {
		if _, err := s.Unseal(context.Background(), sealed); err != nil {
			t.Fatal(err)
		}
		server.CloseClientConnections()
	}
}

func TestCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, good)
	}))
	defer server.Close()
	s := servers(t, "https", server.Listener.Addr().String())
	if _, err := s.Unseal(context.Background(), sealed); !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Errorf("%v", err)
	}
	s.client.Transport = server.Client().Transport
	if _, err := s.Unseal(context.Background(), sealed); err != nil {
		t.Error(err)
	}
}

func TestURI(t *testing.T) {
	for uri, want := range map[string]string{
		"kms://http@localhost:9601/kms":       "http://localhost:9601/kms",
		"kms://https@a.example;b.example/kms": "https://a.example:443/kms https://b.example:443/kms",
		"kms://http@localhost/kms/":           "http://localhost:80/kms",
		"kms://http@localhost:9600":           "http://localhost:9600",
		"kms://https@[::1]:16000/kms":         "https://[::1]:16000/kms",
		"kms://localhost:9600/kms":            "",
		"kms:///kms":                          "",
		"kms://http@a:1;b;c:2/kms":            "http://a:1/kms http://b:2/kms http://c:2/kms",
	} {
		s, err := New(uri, time.Second, nil)
		if err != nil != (want == "") || err == nil && strings.Join(s.urls, " ") != want {
			t.Errorf("%s: %v, %v", uri, s, err)
		}
	}
}
