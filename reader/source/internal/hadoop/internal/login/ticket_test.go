package login

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
)

// If this machine's clock is behind that of the KDC, a library that logs in with a ticket uses that
// ticket, and does not fetch one with another key.
func TestTicketWithClockBehind(t *testing.T) {
	kdc := startKDC(t, time.Minute)
	ticket, err := New(kdc.options).Get("hdfs/nn")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ticket.Client.GetServiceTicket(ticket.Service)
	if err != nil {
		t.Fatal(err)
	}
	if n := kdc.tickets(); n != 1 || !bytes.Equal(key.KeyValue, ticket.Key.KeyValue) {
		t.Errorf("%d tickets fetched; the keys are the same: %v", n, bytes.Equal(key.KeyValue, ticket.Key.KeyValue))
	}
}

// The KDC is asked once for a ticket, which those that have it can use after Forget, too.
func TestTicketAfterForget(t *testing.T) {
	kdc := startKDC(t, -time.Second)
	k := New(kdc.options)
	var tickets []*Ticket
	for range 3 {
		ticket, err := k.Get("HTTP/kms")
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	if n := kdc.tickets(); n != 1 {
		t.Errorf("%d tickets fetched", n)
	}
	k.Forget()
	for _, ticket := range tickets {
		if _, err := spnego.SPNEGOClient(ticket.Client, ticket.Service).InitSecContext(); err != nil {
			t.Error(err)
		}
		if name := ticket.Client.Credentials.UserName(); name != "alice" {
			t.Errorf("ticket of %q", name)
		}
	}
}

// A KDC may be unavailable for a time, at the login as well as later.
func TestUnavailableKDC(t *testing.T) {
	kdc := startKDC(t, 0)
	k := New(kdc.options)
	for range 2 {
		kdc.refuse(errorcode.KDC_ERR_SVC_UNAVAILABLE)
		if _, err := k.Get("hdfs/nn"); !errors.Is(err, ErrKDC) {
			t.Error(err)
		}
		kdc.refuse(0)
		if _, err := k.Get("HTTP/kms"); err != nil {
			t.Error(err)
		}
	}
}

// testKDC is a KDC that gives alice a ticket for each service, without preauthentication.
type testKDC struct {
	options Options       // of alice
	ahead   time.Duration // of the KDC's clock
	keys    *keytab.Keytab

	mu struct {
		sync.Mutex
		login   types.EncryptionKey // of the last ticket-granting ticket
		tickets int                 // for services
		refusal int32               // error code of all answers; 0: none
	}
}

const (
	testRealm = "A.TEST"
	testType  = 18 // aes256-cts-hmac-sha1-96
)

func startKDC(t *testing.T, ahead time.Duration) *testKDC {
	t.Helper()
	k := &testKDC{ahead: ahead, keys: keytab.New()}
	for _, name := range []string{"alice", "krbtgt/" + testRealm, "hdfs/nn", "HTTP/kms"} {
		if err := k.keys.AddEntry(name, testRealm, name, time.Now(), 1, testType); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if err := k.serve(c); err != nil {
				t.Errorf("KDC: %v", err)
			}
			_ = c.Close()
		}
	}()
	dir := t.TempDir()
	k.options = Options{Principal: "alice", Keytab: filepath.Join(dir, "keytab"), Krb5Conf: filepath.Join(dir, "krb5.conf")}
	table, err := k.keys.Marshal()
	text := fmt.Sprintf("[libdefaults]\n default_realm = %s\n udp_preference_limit = 1\n[realms]\n %[1]s = {\n  kdc = %s\n }\n", testRealm, l.Addr())
	if err := errors.Join(err, os.WriteFile(k.options.Keytab, table, 0o600), os.WriteFile(k.options.Krb5Conf, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return k
}

// serve answers one request.
func (k *testKDC) serve(c net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	request := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(c, request); err != nil {
		return err
	}
	answer, err := k.answer(request)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	return err
}

func (k *testKDC) answer(request []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.refusal != 0 {
		refusal := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/"+testRealm), testRealm, k.mu.refusal, "")
		return refusal.Marshal()
	}
	alice := types.NewPrincipalName(1, "alice")
	if request[0]&31 == asnAppTag.ASREQ {
		var req messages.ASReq
		if err := req.Unmarshal(request); err != nil {
			return nil, err
		}
		key, _, err := k.keys.GetEncryptionKey(alice, testRealm, 1, testType)
		if err != nil {
			return nil, err
		}
		rep := messages.ASRep{KDCRepFields: messages.KDCRepFields{PVNO: 5, MsgType: msgtype.KRB_AS_REP, CRealm: testRealm, CName: alice}}
		if k.mu.login, err = k.fill(&rep.KDCRepFields, req.ReqBody, key, keyusage.AS_REP_ENCPART); err != nil {
			return nil, err
		}
		return rep.Marshal()
	}
	k.mu.tickets++
	var req messages.TGSReq
	if err := req.Unmarshal(request); err != nil {
		return nil, err
	}
	rep := messages.TGSRep{KDCRepFields: messages.KDCRepFields{PVNO: 5, MsgType: msgtype.KRB_TGS_REP, CRealm: testRealm, CName: alice}}
	if _, err := k.fill(&rep.KDCRepFields, req.ReqBody, k.mu.login, keyusage.TGS_REP_ENCPART_SESSION_KEY); err != nil {
		return nil, err
	}
	return rep.Marshal()
}

// fill adds a new ticket for what was asked to an answer that is encrypted with key. It returns the
// ticket's key.
func (k *testKDC) fill(rep *messages.KDCRepFields, req messages.KDCReqBody, key types.EncryptionKey, usage uint32) (types.EncryptionKey, error) {
	now := time.Now().UTC().Add(k.ahead).Truncate(time.Second)
	end := now.Add(time.Hour)
	ticket, ticketKey, err := messages.NewTicket(rep.CName, rep.CRealm, req.SName, testRealm, types.NewKrbFlags(), k.keys, testType, 1, now, now, end, time.Time{})
	if err != nil {
		return ticketKey, err
	}
	part := messages.EncKDCRepPart{Key: ticketKey, LastReqs: []messages.LastReq{{LRValue: now}}, Nonce: req.Nonce, Flags: types.NewKrbFlags(),
		AuthTime: now, StartTime: now, EndTime: end, SRealm: testRealm, SName: req.SName}
	text, err := part.Marshal()
	if err != nil {
		return ticketKey, err
	}
	rep.Ticket = ticket
	rep.EncPart, err = crypto.GetEncryptedData(text, key, usage, 1)
	return ticketKey, err
}

// tickets returns how many tickets for services were asked for.
func (k *testKDC) tickets() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.tickets
}

// refuse makes the KDC answer with an error code; 0 ends that.
func (k *testKDC) refuse(code int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.refusal = code
}
