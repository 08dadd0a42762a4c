package login

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Options say who logs in, and where that is known.
type Options struct {
	Principal, Keytab string // user@REALM or user/host@REALM, and the file of its key; without them a ticket cache is used
	CCache            string // default: $KRB5CCNAME, then /tmp/krb5cc_<uid>
	Krb5Conf          string // default: $KRB5_CONFIG, then /etc/krb5.conf
}

// Kerberos is the identity of one user. With a key table the library
// renews the tickets itself; a ticket cache is read again from its file when
// its ticket has expired or the file has changed, since the user renews it
// with kinit.
type Kerberos struct {
	o Options

	mu      sync.Mutex // guards the fields below; held during a login
	client  *client.Client
	expires time.Time // of the ticket cache
	modTime time.Time // of the ticket cache's file
}

// ErrTicketExpired says that the ticket in the cache has expired; kinit renews it.
var ErrTicketExpired = errors.New("ticket expired")

// ErrKDC says that a KDC does not answer, as opposed to refusing the login.
var ErrKDC = errors.New("KDC unreachable")

// New logs nobody in yet.
func New(o Options) *Kerberos {
	if o.Krb5Conf == "" {
		o.Krb5Conf = cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	}
	if o.Keytab == "" && o.CCache == "" {
		o.CCache = cmp.Or(os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
	}
	return &Kerberos{o: o}
}

// Who is the principal, or says where it is written.
func (k *Kerberos) Who() string { return cmp.Or(k.o.Principal, "the ticket cache's principal") }

// Get returns a client with a valid ticket, logging in if need be.
func (k *Kerberos) Get() (*client.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.o.Keytab != "" {
		if k.client != nil {
			return k.client, nil
		}
		return k.loginLocked()
	}
	path, err := k.cachePath()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("no Kerberos ticket cache: %w (run kinit, or set data.hdfs.kerberos_principal and kerberos_keytab)", err)
	}
	if k.client != nil && info.ModTime().Equal(k.modTime) && time.Now().Before(k.expires) {
		return k.client, nil
	}
	return k.loadCacheLocked(path, info.ModTime())
}

// Forget makes the next Get log in anew.
func (k *Kerberos) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		k.client.Destroy()
		k.client = nil
	}
}

// loginLocked logs in with the key table. REQUIRES: k.mu.
func (k *Kerberos) loginLocked() (*client.Client, error) {
	conf, err := loadConf(k.o.Krb5Conf)
	if err != nil {
		return nil, err
	}
	name, realm, _ := strings.Cut(k.o.Principal, "@")
	if name == "" {
		return nil, errors.New("a key table needs data.hdfs.kerberos_principal (user@REALM)")
	}
	if realm == "" {
		realm = conf.LibDefaults.DefaultRealm
	}
	keys, err := keytab.Load(k.o.Keytab)
	if err != nil {
		return nil, fmt.Errorf("key table %s: %w", k.o.Keytab, err)
	}
	cl := client.NewWithKeytab(name, realm, keys, conf, client.DisablePAFXFAST(true))
	if err := cl.Login(); err != nil {
		// gokrb5's errors have no types, so their text is searched.
		text := err.Error()
		switch {
		case strings.Contains(text, "communicat"): // "communication error with KDC", "failed to communicate with KDC"
			return nil, fmt.Errorf("%w: login of %s@%s: %w", ErrKDC, name, realm, err)
		case strings.Contains(text, "matching key not found"):
			text = "the key table holds no key of this principal; `klist -k -e` lists its keys"
		case strings.Contains(text, "PREAUTH_FAILED"), strings.Contains(text, "Decrypting_Error"):
			text = "the key in the key table is not, or no longer, that of the principal: export it again with ktadd"
		case strings.Contains(text, "C_PRINCIPAL_UNKNOWN"):
			text = "the KDC does not know this principal"
		}
		return nil, fmt.Errorf("login of %s@%s with key table %s refused: %s", name, realm, k.o.Keytab, text)
	}
	k.client = cl
	return cl, nil
}

// loadCacheLocked reads the ticket cache. REQUIRES: k.mu.
func (k *Kerberos) loadCacheLocked(path string, modTime time.Time) (*client.Client, error) {
	conf, err := loadConf(k.o.Krb5Conf)
	if err != nil {
		return nil, err
	}
	cache, err := credentials.LoadCCache(path)
	if err != nil {
		return nil, fmt.Errorf("ticket cache %s: %w", path, err)
	}
	realm := cache.DefaultPrincipal.Realm
	tgt, ok := cache.GetEntry(types.PrincipalName{NameString: []string{"krbtgt", realm}})
	if !ok {
		return nil, fmt.Errorf("ticket cache %s has no ticket-granting ticket for %s: run kinit", path, realm)
	}
	if !time.Now().Before(tgt.EndTime) {
		return nil, fmt.Errorf("%w: the one in ticket cache %s at %s: run kinit (with a key table, data.hdfs.kerberos_keytab, aibox renews tickets by itself)",
			ErrTicketExpired, path, tgt.EndTime.Local().Format(time.DateTime))
	}
	cl, err := client.NewFromCCache(cache, conf, client.DisablePAFXFAST(true))
	if err != nil {
		return nil, fmt.Errorf("ticket cache %s: %w", path, err)
	}
	k.client, k.expires, k.modTime = cl, tgt.EndTime, modTime
	return cl, nil
}

// cachePath is the file of a cache name such as FILE:/tmp/krb5cc_0.
func (k *Kerberos) cachePath() (string, error) {
	kind, path, ok := strings.Cut(k.o.CCache, ":")
	switch {
	case !ok:
		return k.o.CCache, nil
	case kind == "FILE":
		return path, nil
	}
	return "", fmt.Errorf("ticket cache %s is of kind %s; only FILE: can be read: use `kinit -c FILE:path`", k.o.CCache, kind)
}
