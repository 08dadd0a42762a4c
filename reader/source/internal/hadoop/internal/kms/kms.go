package kms

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Scheme is the beginning of a key provider's URI that names a KMS.
const Scheme = "kms://"

// Sealed is the key of a file, encrypted with a version of its zone's key.
type Sealed struct {
	Key, Version string
	IV, Data     []byte
}

// Servers are the KMS hosts of a cluster, each of which knows all keys.
type Servers struct {
	URI      string
	urls     []string
	identify func(context.Context, *http.Request) error
	client   *http.Client
	last     atomic.Int32 // index of the host that answered last; it is asked first
}

// New returns the servers of a URI such as kms://https@host1;host2:9600/kms. Its port is used for
// all hosts that have none; as in Hadoop, it is that of HTTPS or HTTP if the URI has none. identify
// adds the user's identity to a request. timeout limits each request.
func New(uri string, timeout time.Duration, identify func(context.Context, *http.Request) error) (*Servers, error) {
	u, err := url.Parse(uri)
	if err != nil || u.User == nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is not of the form kms://https@host1;host2:9600/kms", uri)
	}
	s := &Servers{URI: uri, identify: identify, client: &http.Client{Timeout: timeout,
		Transport: &http.Transport{IdleConnTimeout: timeout, TLSHandshakeTimeout: timeout}}} // no proxy, as in Hadoop
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.User.Username()])
	for host := range strings.SplitSeq(u.Host, ";") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		s.urls = append(s.urls, u.User.Username()+"://"+host+strings.TrimRight(u.Path, "/"))
	}
	return s, nil
}

// Close ends idle connections.
func (s *Servers) Close() { s.client.CloseIdleConnections() }

// Error is a KMS answer without a key.
type Error struct {
	Status    int    // HTTP status
	Exception string // Java class without package; "": no answer of a KMS to the request itself, for example a refused login
	Message   string
}

func (e *Error) Error() string {
	if e.Exception == "" {
		return fmt.Sprintf("HTTP status %d: %s", e.Status, e.Message)
	}
	return e.Message
}

// Unseal returns a key, decrypted by the first server that can.
func (s *Servers) Unseal(ctx context.Context, sealed Sealed) ([]byte, error) {
	first := int(s.last.Load())
	var errs []error
	for i := range s.urls {
		n := (first + i) % len(s.urls)
		key, err := s.ask(ctx, s.urls[n], sealed)
		if err == nil {
			s.last.Store(int32(n))
			return key, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.urls[n], err))
		var answer *Error
		if ctx.Err() != nil || errors.As(err, &answer) && answer.Exception != "" && answer.Status < http.StatusInternalServerError {
			break // the others would refuse, too
		}
	}
	return nil, errors.Join(errs...)
}

// maxAnswer limits how many bytes of an answer are read; an answer with a key has about 100.
const maxAnswer = 64 << 10

func (s *Servers) ask(ctx context.Context, server string, sealed Sealed) ([]byte, error) {
	encode := base64.RawURLEncoding.EncodeToString
	body, err := json.Marshal(map[string]string{"name": sealed.Key, "iv": encode(sealed.IV), "material": encode(sealed.Data)})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/v1/keyversion/"+url.PathEscape(sealed.Version)+"/_eek?eek_op=decrypt", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header["Idempotency-Key"] = nil // a POST with this key is repeated if its idle connection turns out to be closed
	if err := s.identify(ctx, req); err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		var full *url.Error // its text has the whole URL
		if errors.As(err, &full) {
			err = full.Err
		}
		if full != nil && full.Timeout() && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %v: %w", s.client.Timeout, err)
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Material        string
		RemoteException struct{ Exception, Message string }
	}
	wrong := json.Unmarshal(text, &answer)
	if refused := answer.RemoteException; resp.StatusCode != http.StatusOK {
		if refused.Message == "" {
			refused.Message = strings.TrimSpace(strings.TrimPrefix(resp.Status, fmt.Sprint(resp.StatusCode)))
		}
		return nil, &Error{resp.StatusCode, refused.Exception, refused.Message}
	}
	key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(answer.Material, "="))
	if wrong != nil || err != nil || len(key) == 0 {
		return nil, &Error{Status: resp.StatusCode, Message: "the answer has no key: the server is not a KMS"}
	}
	return key, nil
}
