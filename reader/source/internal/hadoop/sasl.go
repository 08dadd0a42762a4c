package hadoop

import (
	"bufio"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"
)

// A secured DataNode requires a SASL handshake with the mechanism DIGEST-MD5 (RFC
// 2831) before a request. User and password are derived from the block's token, or
// from the NameNode's key if all transfers are encrypted. The data that follow are
// plain ("auth"), signed ("auth-int"), or encrypted ("auth-conf"): by AES if the
// DataNode supports it, otherwise by RC4.
//
//	client                                      DataNode
//	0xDEADBEEF, empty message        ->
//	                                 <-         challenge
//	response, suite AES-CTR wished   ->
//	                                 <-         proof, AES keys (encrypted by RC4)

// errProtection means that a DataNode does not offer the level of protection that the
// configuration demands.
var errProtection = errors.New("data transfer protection")

// errUnknownKey means that a DataNode does not know the key or the token.
var errUnknownKey = errors.New("the DataNode does not know the encryption key")

// qops are the levels of protection as the handshake names them (quality of
// protection), from the weakest to the strongest.
var qops = []string{"auth", "auth-int", "auth-conf"}

// securedConn is the connection after the handshake.
type securedConn struct {
	r    io.Reader
	seal func([]byte) []byte // signs or encrypts a request before it is sent
}

// secure makes the handshake. least is the weakest level that is accepted.
func secure(conn net.Conn, b *block, least string) (*securedConn, error) {
	r := bufio.NewReaderSize(conn, dataNodeBufferBytes)
	first, err := appendDelimited([]byte{0xDE, 0xAD, 0xBE, 0xEF}, saslMessage(nil))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(first); err != nil {
		return nil, err
	}
	challenge, err := readSASL(r)
	if err != nil {
		return nil, err
	}
	d, err := newDigest(challenge.bytes("payload"), b, least)
	if err != nil {
		return nil, err
	}
	answer := saslMessage(d.response())
	if d.qop == "auth-conf" {
		options := answer.Mutable(field(answer.Message, "cipherOption")).List()
		message{options.AppendMutable().Message()}.setEnum("suite", "AES_CTR_NOPADDING")
	}
	second, err := appendDelimited(nil, answer)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(second); err != nil {
		return nil, err
	}
	proof, err := readSASL(r)
	if err != nil {
		return nil, err
	}
	if want := "rspauth=" + d.digest(""); string(proof.bytes("payload")) != want {
		return nil, errors.New("the DataNode does not know the secret of the block's token")
	}
	if d.qop == "auth" {
		return &securedConn{r: r, seal: func(b []byte) []byte { return b }}, nil
	}
	in, out, err := d.layers()
	if err != nil {
		return nil, err
	}
	if suites := proof.list("cipherOption"); len(suites) > 0 {
		return aesConn(r, in, suites[0])
	}
	return &securedConn{r: &saslReader{r: r, layer: in}, seal: out.seal}, nil
}

func saslMessage(payload []byte) message {
	m := emptyMessage("DataTransferEncryptorMessageProto").setEnum("status", "SUCCESS")
	if payload != nil {
		m.set("payload", payload)
	}
	return m
}

func readSASL(r *bufio.Reader) (message, error) {
	m := emptyMessage("DataTransferEncryptorMessageProto")
	if err := readDelimited(r, m); err != nil {
		return m, err
	}
	switch m.enum("status") {
	case "SUCCESS":
		return m, nil
	case "ERROR_UNKNOWN_KEY":
		return m, fmt.Errorf("%w: %s", errUnknownKey, m.text("message"))
	}
	return m, fmt.Errorf("the DataNode refused the SASL handshake: %s", m.text("message"))
}

// digest is the state of a DIGEST-MD5 handshake.
type digest struct {
	user, password, realm, nonce, cnonce, qop, cipher string
}

var saslPair = regexp.MustCompile(`([a-zA-Z0-9]+)=("([^"]*)"|[^,]*)`)

// newDigest reads the challenge and chooses among the levels and ciphers that it offers.
func newDigest(challenge []byte, b *block, least string) (*digest, error) {
	said := map[string]string{}
	for _, m := range saslPair.FindAllSubmatch(challenge, -1) {
		said[string(m[1])] = strings.Trim(string(m[2]), `"`)
	}
	d := &digest{realm: said["realm"], nonce: said["nonce"]}
	offered := strings.Split(said["qop"], ",")
	for i, qop := range offered {
		offered[i] = strings.TrimSpace(qop)
	}
	for _, qop := range offered { // the first one of the DataNode's list that is strong enough
		if slices.Index(qops, qop) >= slices.Index(qops, least) {
			d.qop = qop
			break
		}
	}
	if d.qop == "" {
		return nil, fmt.Errorf("%w: the DataNode offers only %s", errProtection, said["qop"])
	}
	if ciphers := strings.Split(said["cipher"], ","); d.qop == "auth-conf" {
		for _, c := range []string{"rc4", "rc4-56", "rc4-40"} {
			if d.cipher == "" && slices.Contains(ciphers, c) {
				d.cipher = c
			}
		}
		if d.cipher == "" {
			return nil, fmt.Errorf("%w: none of the DataNode's ciphers, %q, is supported", errProtection, said["cipher"])
		}
	}
	token := b.located.in("blockToken")
	d.user, d.password = base64.StdEncoding.EncodeToString(token.bytes("identifier")), base64.StdEncoding.EncodeToString(token.bytes("password"))
	if k := b.key; k != nil {
		d.user = fmt.Sprintf("%d %s %s", k.id, k.pool, base64.StdEncoding.EncodeToString(k.nonce))
		d.password = base64.StdEncoding.EncodeToString(k.secret)
	}
	random := make([]byte, 12)
	_, _ = rand.Read(random) // never fails
	d.cnonce = base64.StdEncoding.EncodeToString(random)
	return d, nil
}

const (
	digestURI   = "hdfs/0"
	digestCount = "00000001" // the first use of the nonce
)

// response answers the challenge.
func (d *digest) response() []byte {
	s := fmt.Sprintf(`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=%s,cnonce="%s",digest-uri="%s",response=%s,qop=%s`,
		d.user, d.realm, d.nonce, digestCount, d.cnonce, digestURI, d.digest("AUTHENTICATE"), d.qop)
	if d.cipher != "" {
		s += fmt.Sprintf(`,cipher="%s"`, d.cipher)
	}
	return []byte(s)
}

func sum(parts ...string) string {
	h := md5.Sum([]byte(strings.Join(parts, "")))
	return string(h[:])
}

// a1 is H(A1) of the RFC: the session's secret.
func (d *digest) a1() string {
	return sum(sum(d.user, ":", d.realm, ":", d.password), ":", d.nonce, ":", d.cnonce)
}

// digest proves that its maker knows the password; method is AUTHENTICATE for
// the client and empty for the server.
func (d *digest) digest(method string) string {
	a2 := method + ":" + digestURI
	if d.qop != "auth" {
		a2 += ":00000000000000000000000000000000"
	}
	h := func(s string) string { return hex.EncodeToString([]byte(s)) }
	return h(sum(h(d.a1()), ":", d.nonce, ":", digestCount, ":", d.cnonce, ":", d.qop, ":", h(sum(a2))))
}

// handshake says whether a DataNode at port requires a handshake, and the weakest level
// that the configuration accepts. As in Hadoop, a DataNode on a privileged port is
// trusted without a handshake, unless all transfers are encrypted.
func (c *Cluster) handshake(b *block, port int) (least string, wanted bool) {
	switch {
	case b.key != nil:
		return "auth-conf", true
	case c.krb == nil || c.conf.protection == "" || port < 1024:
		return "", false
	case c.conf.protection == hdfs.DataTransferProtectionPrivacy:
		return "auth-conf", true
	case c.conf.protection == hdfs.DataTransferProtectionIntegrity:
		return "auth-int", true
	}
	return "auth", true
}
