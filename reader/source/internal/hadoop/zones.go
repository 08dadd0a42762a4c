package hadoop

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/spnego"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/kms"
	"aibox/reader/source/internal/hadoop/internal/login"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// Clients encrypt the files in an encryption zone when they write them, and decrypt them when they
// read them. DataNodes store only the encrypted bytes, and checksums of those.

// zoneInfo is what the NameNode stores about the encryption of a file in an encryption zone.
type zoneInfo struct {
	suite string
	key   kms.Sealed
}

// sm4 is the number of a cipher for which the client library has no name.
const sm4 = "3"

// zoneOf returns the zoneInfo in a message, or nil if the file is in no encryption zone.
func zoneOf(m wire.Message) *zoneInfo {
	if !m.Has("fileEncryptionInfo") {
		return nil
	}
	info := m.In("fileEncryptionInfo")
	return &zoneInfo{suite: info.Enum("suite"), key: kms.Sealed{Key: info.Text("keyName"), Version: info.Text("ezKeyVersionName"),
		IV: info.Bytes("iv"), Data: info.Bytes("key")}}
}

// fileKey encrypts and decrypts a file (AES/CTR/NoPadding).
type fileKey struct {
	block cipher.Block
	iv    []byte
}

// at returns the key stream from offset on. The counter of the cipher is a big-endian number of 16
// bytes. It begins with the IV of the file and grows by one every 16 bytes.
func (k *fileKey) at(offset int64) cipher.Stream {
	low, carry := bits.Add64(binary.BigEndian.Uint64(k.iv[8:]), uint64(offset/aes.BlockSize), 0)
	counter := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(k.iv)+carry)
	stream := cipher.NewCTR(k.block, binary.BigEndian.AppendUint64(counter, low))
	before := make([]byte, offset%aes.BlockSize)
	stream.XORKeyStream(before, before)
	return stream
}

// decrypt returns the stream that decrypts the bytes from offset on.
func (fb *fileBlocks) decrypt(ctx context.Context, z *zoneInfo, offset int64) (cipher.Stream, error) {
	key := fb.fileKey.Load()
	if key == nil {
		var err error
		if key, err = fb.c.fileKey(ctx, z); err != nil {
			return nil, err
		}
		fb.fileKey.Store(key)
	}
	return key.at(offset), nil
}

// encrypted reads a file and encrypts it, as DataNodes store it.
type encrypted struct {
	io.ReaderAt
	key *fileKey
}

func (e *encrypted) ReadAt(p []byte, off int64) (int, error) {
	n, err := e.ReaderAt.ReadAt(p, off)
	e.key.at(off).XORKeyStream(p[:n], p[:n])
	return n, err
}

// zones is what a cluster knows about the keys of its encryption zones.
type zones struct {
	mu      sync.Mutex   // guards named and servers
	named   string       // the key provider that the NameNode names
	servers *kms.Servers // nil: not needed yet
	usable  sync.Map     // set of versions of zone keys with which the KMS has decrypted a file's key
}

// keyError says why a file cannot be decrypted or encrypted.
type keyError struct {
	key  string // of the zone
	kind error  // nil: classifyKey derives it from err
	hint string
	err  error
}

func (e *keyError) Error() string {
	return fmt.Sprintf("key %q of its encryption zone: %v", e.key, e.err)
}
func (e *keyError) Unwrap() error { return e.err }

// fileKey has a KMS decrypt the key of a file.
func (c *Cluster) fileKey(ctx context.Context, z *zoneInfo) (*fileKey, error) {
	fail := func(kind, err error, hint string) (*fileKey, error) {
		return nil, &keyError{key: z.key.Key, kind: kind, err: err, hint: hint}
	}
	if z.suite != "AES_CTR_NOPADDING" || len(z.key.IV) != aes.BlockSize {
		return fail(fsys.ErrUnsupported, fmt.Errorf("the cipher is %s", strings.Replace(z.suite, sm4, "SM4/CTR/NoPadding", 1)),
			"only AES/CTR/NoPadding is supported: copy it to another zone with hdfs dfs -cp, or write to another directory")
	}
	servers, err := c.keyServers()
	if err != nil {
		return fail(fsys.ErrConfig, err, "dfs.encryption.key.provider.uri in data.hdfs.conf_dir names the KMS, unless the NameNode does")
	}
	secret, err := servers.Unseal(ctx, z.key)
	if err != nil {
		return fail(nil, err, "")
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return fail(fsys.ErrFailed, err, "")
	}
	c.zones.usable.Store(z.key.Version, true)
	return &fileKey{block: block, iv: z.key.IV}, nil
}

// checkKey returns an error if the KMS does not decrypt the key of a file. It asks once for each
// version of a zone's key. z is nil for a file in no zone.
func (c *Cluster) checkKey(ctx context.Context, z *zoneInfo) (err error) {
	if z == nil {
		return nil
	}
	if _, usable := c.zones.usable.Load(z.key.Version); !usable {
		_, err = c.fileKey(ctx, z)
	}
	return err
}

// keyServers returns the KMS of the cluster. As in Hadoop, the KMS that the NameNode names takes
// precedence over that of the configuration.
func (c *Cluster) keyServers() (*kms.Servers, error) {
	c.zones.mu.Lock()
	defer c.zones.mu.Unlock()
	uri := c.zones.named
	if c.conf.ownKeyProvider || !strings.HasPrefix(uri, kms.Scheme) && c.conf.keyProvider != "" {
		uri = c.conf.keyProvider
	}
	if uri == "" {
		return nil, errors.New("no KMS is configured")
	}
	if !strings.HasPrefix(uri, kms.Scheme) {
		return nil, fmt.Errorf("the key provider is %q, which is not a KMS", uri)
	}
	if c.zones.servers == nil || c.zones.servers.URI != uri {
		servers, err := kms.New(uri, c.timeout, c.identify)
		if err != nil {
			return nil, err
		}
		c.zones.servers = servers
	}
	return c.zones.servers, nil
}

// setKeyProvider records the key provider that a NameNode names.
func (z *zones) setKeyProvider(uri string) {
	z.mu.Lock()
	z.named = uri
	z.mu.Unlock()
}

func (z *zones) close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.servers != nil {
		z.servers.Close()
	}
}

// identify adds the user's identity to a request to a KMS: its name, or a Kerberos ticket.
func (c *Cluster) identify(ctx context.Context, req *http.Request) error {
	if c.krb == nil {
		query := req.URL.Query()
		query.Set("user.name", c.conf.base.User)
		req.URL.RawQuery = query.Encode()
		return nil
	}
	ticket, err := c.login(ctx, "HTTP/_HOST", req.URL.Host)
	if err != nil {
		return err
	}
	token, err := spnego.SPNEGOClient(ticket.Client, ticket.Service).InitSecContext()
	if err != nil {
		return &loginError{err}
	}
	header, err := token.Marshal()
	if err != nil {
		return &loginError{err}
	}
	req.Header.Set("Authorization", "Negotiate "+base64.StdEncoding.EncodeToString(header))
	return nil
}

// classifyKey classifies errors of encryption keys.
func (r *retrier) classifyKey(err error) (verdict, bool) {
	var key *keyError
	if !errors.As(err, &key) {
		return verdict{}, false
	}
	if key.kind != nil {
		return verdict{kind: key.kind, hint: key.hint, attempts: 1}, true
	}
	if errors.Is(err, login.ErrUnknownService) {
		return verdict{kind: fsys.ErrConfig, attempts: 1, hint: "the KDC must have a principal HTTP/host for the host of the KMS, as its URI names it"}, true
	}
	if v, ok := r.classifyLogin(err); ok {
		return v, true
	}
	var answer *kms.Error
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return verdict{kind: fsys.ErrConfig, attempts: 1, hint: "aibox trusts the certificate authorities of this machine, or those of the file that $SSL_CERT_FILE names"}, true
	case !errors.As(err, &answer), answer.Status >= http.StatusInternalServerError:
		return verdict{kind: fsys.ErrUnavailable, hint: "is the KMS running, and is this its address?"}, true
	case answer.Status == http.StatusForbidden && answer.Exception != "":
		return verdict{kind: fsys.ErrPermission, attempts: 1, hint: "the administrator of the KMS can allow DECRYPT_EEK with this key (kms-acls.xml)"}, true
	case answer.Exception != "":
		return verdict{kind: fsys.ErrFailed, attempts: 1, hint: "was the key deleted, or is this the KMS of another cluster?"}, true
	case answer.Status != http.StatusUnauthorized && answer.Status != http.StatusForbidden:
		return verdict{kind: fsys.ErrConfig, attempts: 1, hint: "is this the address of the KMS, with its path (/kms, usually)?"}, true
	case r.c.krb == nil:
		return verdict{kind: fsys.ErrPermission, attempts: 1,
			hint: "does the KMS require Kerberos? Set data.hdfs.kerberos_principal and kerberos_keytab, or data.hdfs.conf_dir"}, true
	}
	return verdict{kind: fsys.ErrPermission, attempts: 3, login: true, hint: "the KMS refused the Kerberos login"}, true
}
