package login

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Options say who logs in, and where the credentials are.
type Options struct {
	Principal, Keytab string // user@REALM or user/host@REALM, and the file of its key; without them a ticket cache is used
	CCache            string // default: $KRB5CCNAME, then what krb5.conf names, then /tmp/krb5cc_<uid>
	Krb5Conf          string // default: $KRB5_CONFIG, then /etc/krb5.conf
	Realm             string // of services for which krb5.conf names none; default: that of the user
}

// Kerberos is the identity of one user. With a key table the library
// renews the tickets itself; a ticket cache is read again from its file when
// its ticket has expired or the file has changed, since the user renews it
// with kinit.
type Kerberos struct {
	o Options

	mu      sync.Mutex // guards the fields below; held during a login and while a ticket is fetched
	client  *client.Client
	conf    *krb5Conf
	expires time.Time // of the ticket cache
	modTime time.Time // of the ticket cache's file
	silent  struct {  // the last time that no KDC answered
		at  time.Time
		err error
	}
}

// ErrNoTicket says that the ticket cache holds no valid ticket; kinit renews it.
var ErrNoTicket = errors.New("no valid ticket")

// ErrKDC says that a KDC does not answer, or that it is unavailable, as opposed to refusing the login.
var ErrKDC = errors.New("KDC unavailable")

// ErrUnknownService says that the KDC does not know the principal of a service.
var ErrUnknownService = errors.New("the KDC does not know the principal of the service")

// New returns an identity that is not logged in yet.
func New(o Options) *Kerberos {
	o.Krb5Conf = cmp.Or(o.Krb5Conf, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	return &Kerberos{o: o}
}

// Who returns the principal, or a text that says where it is written.
func (k *Kerberos) Who() string { return cmp.Or(k.o.Principal, "the ticket cache's principal") }

// Get returns a valid ticket for a service such as hdfs/host. It logs in if necessary. The client
// library would fetch the service's ticket itself, but from several goroutines at a time, for which
// gokrb5 is not safe, and it would return errors only as text.
func (k *Kerberos) Get(service string) (*Ticket, error) {
	begin := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.silent.at.After(begin) {
		return nil, k.silent.err // those that waited need not ask the KDCs again, one after the other
	}
	t, err := k.getLocked(service)
	if errors.Is(err, ErrKDC) {
		k.silent.at, k.silent.err = time.Now(), err
	}
	return t, err
}

// getLocked is Get. REQUIRES: k.mu.
func (k *Kerberos) getLocked(service string) (*Ticket, error) {
	login := k.cacheLocked
	if k.o.Keytab != "" {
		login = k.keytabLocked
	}
	old := k.client
	if err := login(); err != nil {
		return nil, err
	}
	t, err := k.ticketLocked(service)
	if err == nil {
		return t, nil
	}
	err = fmt.Errorf("ticket for %s: %w", service, explained(err))
	if k.client == old && !errors.Is(err, ErrKDC) && !errors.Is(err, ErrUnknownService) {
		k.forgetLocked() // the key table may have a new key, and the cache a new ticket
		return k.getLocked(service)
	}
	return nil, err
}

// ticketLocked returns the ticket for a service, and fetches it unless there is one. REQUIRES: k.mu.
func (k *Kerberos) ticketLocked(service string) (*Ticket, error) {
	_, host, _ := strings.Cut(service, "/")
	if k.o.Realm != "" && k.conf.ResolveRealm(host) == "" {
		k.conf.DomainRealm[host] = k.o.Realm
	}
	t, key, err := k.client.GetServiceTicket(service)
	if err != nil {
		return nil, err
	}
	return newTicket(k.client, t, key)
}

// Forget makes the next Get log in anew.
func (k *Kerberos) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked()
}

// forgetLocked is Forget. REQUIRES: k.mu.
func (k *Kerberos) forgetLocked() {
	if k.client != nil {
		k.client.Destroy()
		k.client = nil
	}
}

// keytabLocked logs in with the key table. REQUIRES: k.mu.
func (k *Kerberos) keytabLocked() error {
	if k.client != nil {
		return nil
	}
	conf, err := loadConf(k.o.Krb5Conf)
	if err != nil {
		return err
	}
	name, realm, _ := strings.Cut(k.o.Principal, "@")
	if name == "" {
		return errors.New("a keytab needs data.hdfs.kerberos_principal (user@REALM)")
	}
	realm = cmp.Or(realm, conf.LibDefaults.DefaultRealm)
	keys, err := keytab.Load(k.o.Keytab)
	if err != nil {
		return fmt.Errorf("keytab %s: %w", k.o.Keytab, err)
	}
	for i := range keys.Entries {
		// gokrb5 takes the key with the latest time, but if a key table was copied into another one,
		// the times are those of the copy. So the key's version number replaces its time.
		keys.Entries[i].Timestamp = time.Unix(int64(keys.Entries[i].KVNO), 0)
	}
	cl := client.NewWithKeytab(name, realm, keys, conf.Config, client.DisablePAFXFAST(true))
	// The KDC may have keys of types that are not in the table, so it is asked only for those that are.
	isMissing := func(kind int32) bool {
		_, _, err := keys.GetEncryptionKey(cl.Credentials.CName(), realm, 0, kind)
		return err != nil
	}
	if kinds := slices.DeleteFunc(slices.Clone(conf.LibDefaults.DefaultTktEnctypeIDs), isMissing); len(kinds) > 0 {
		conf.LibDefaults.DefaultTktEnctypeIDs = kinds
	}
	if err := cl.Login(); err != nil {
		return fmt.Errorf("login of %s@%s with keytab %s: %w", name, realm, k.o.Keytab, explained(err))
	}
	k.client, k.conf = cl, conf
	return nil
}

// explained returns an error that says what an error of gokrb5 means. Those have no types, so their
// text is searched.
func explained(err error) error {
	text := err.Error()
	for _, e := range []struct{ word, means string }{
		{"matching key not found", "refused: the keytab holds no key of this principal; `klist -k -e` lists its keys"},
		{"PREAUTH_FAILED", "refused: the key in the keytab is not, or no longer, that of the principal: export it again with ktadd"},
		{"Decrypting_Error", "refused: the key in the keytab is not, or no longer, that of the principal: export it again with ktadd"},
		{"C_PRINCIPAL_UNKNOWN", "refused: the KDC does not know this principal"},
		{"ETYPE_NOSUPP", "refused: the KDC supports none of the encryption types that krb5.conf and the keytab allow"},
		{"SKEW", "refused: the clocks of this machine and of the KDC differ too much"},
		{"clock skew", "refused: the clocks of this machine and of the KDC differ too much"},
	} {
		if strings.Contains(text, e.word) {
			return errors.New(e.means)
		}
	}
	switch {
	case strings.Contains(text, "S_PRINCIPAL_UNKNOWN"):
		return ErrUnknownService
	case strings.Contains(text, "communicat"), strings.Contains(text, "Networking_Error"),
		strings.Contains(text, "SVC_UNAVAILABLE"):
		// "communication error with KDC", "failed to communicate with KDC"; the last one is the answer
		// of a KDC while its database is locked
		return fmt.Errorf("%w: %w", ErrKDC, err)
	}
	return fmt.Errorf("refused: %s", text)
}

// cacheLocked reads the ticket cache, unless the ticket that was read before is still valid and the
// file has not changed. REQUIRES: k.mu.
func (k *Kerberos) cacheLocked() error {
	conf, err := loadConf(k.o.Krb5Conf) // it is small
	if err != nil {
		return err
	}
	path, err := cachePath(cmp.Or(k.o.CCache, os.Getenv("KRB5CCNAME"), conf.cache, "/tmp/krb5cc_%{uid}"))
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("no Kerberos ticket cache: %w (run kinit, or set data.hdfs.kerberos_principal and kerberos_keytab)", err)
	}
	if k.client != nil && info.ModTime().Equal(k.modTime) && time.Now().Before(k.expires) {
		return nil
	}
	cl, end, err := readCache(path, conf)
	if err != nil {
		return fmt.Errorf("%w: ticket cache %s: %w: run kinit", ErrNoTicket, path, err)
	}
	if !time.Now().Before(end) {
		return fmt.Errorf("%w: the one in ticket cache %s has expired at %s: run kinit (with a keytab, data.hdfs.kerberos_keytab, aibox renews tickets by itself)",
			ErrNoTicket, path, end.Local().Format(time.DateTime))
	}
	k.client, k.conf, k.expires, k.modTime = cl, conf, end, info.ModTime()
	return nil
}

// readCache returns a client with the tickets of a cache, and the time until which its
// ticket-granting ticket is valid. gokrb5 panics if the file ends early, as it does while kinit
// writes it.
func readCache(path string, conf *krb5Conf) (cl *client.Client, end time.Time, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("it is damaged, or is just being written")
		}
	}()
	cache, err := credentials.LoadCCache(path)
	if err != nil {
		return nil, end, err
	}
	realm := cache.DefaultPrincipal.Realm
	tgt, ok := cache.GetEntry(types.PrincipalName{NameString: []string{"krbtgt", realm}})
	if !ok {
		return nil, end, errors.New("it has no ticket-granting ticket for " + realm)
	}
	cl, err = client.NewFromCCache(cache, conf.Config, client.DisablePAFXFAST(true))
	return cl, tgt.EndTime, err
}

// cachePath returns the file of a cache name such as FILE:/tmp/krb5cc_0 or DIR:/run/user/0/krb5cc.
func cachePath(name string) (string, error) {
	uid := strconv.Itoa(os.Getuid())
	who := uid
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	name = strings.NewReplacer("%{uid}", uid, "%{euid}", strconv.Itoa(os.Geteuid()), "%{USERID}", uid,
		"%{username}", who, "%{TEMP}", os.TempDir(), "%{null}", "").Replace(name)
	kind, path, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return name, nil
	case kind == "FILE":
		return path, nil
	case kind == "DIR" && strings.HasPrefix(path, ":"): // one of the directory's caches
		return path[1:], nil
	case kind == "DIR":
		primary, err := os.ReadFile(filepath.Join(path, "primary"))
		if err != nil {
			primary = []byte("tkt")
		}
		return filepath.Join(path, strings.TrimSpace(string(primary))), nil
	}
	return "", fmt.Errorf("ticket cache %s is of kind %s; only FILE: and DIR: can be read: use `kinit -c FILE:path`, and set KRB5CCNAME or data.hdfs.kerberos_ccache", name, kind)
}
