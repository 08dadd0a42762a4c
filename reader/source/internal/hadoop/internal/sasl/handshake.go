package sasl

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

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// ErrProtection means that a DataNode does not offer the level of protection that the
// configuration demands.
var ErrProtection = errors.New("data transfer protection")

// ErrUnknownKey means that a DataNode does not know the key or the token.
var ErrUnknownKey = errors.New("the DataNode does not know the encryption key")

// Level is how a connection is protected, as the handshake names it (quality of protection).
type Level string

// The levels.
const (
	Authenticated Level = "auth"
	Signed        Level = "auth-int"
	Encrypted     Level = "auth-conf"
)

// levels are ordered from the weakest to the strongest.
var levels = []Level{Authenticated, Signed, Encrypted}

// Login is the credentials of a client, which prove that it may access a block.
type Login struct{ User, Password string }

// Conn is a connection after the handshake.
type Conn struct {
	R    io.Reader
	Seal func([]byte) []byte // signs or encrypts a request before it is sent
}

// Unprotected returns a connection without a handshake.
func Unprotected(conn io.Reader) *Conn {
	return &Conn{R: conn, Seal: func(b []byte) []byte { return b }}
}

// bufferBytes holds two packets of the usual size, 64 KiB.
const bufferBytes = 160 << 10

// Handshake performs the handshake with a DataNode. least is the weakest level that is accepted.
func Handshake(conn net.Conn, login Login, least Level) (*Conn, error) {
	r := bufio.NewReaderSize(conn, bufferBytes)
	challenge, err := exchange(conn, r, []byte{0xDE, 0xAD, 0xBE, 0xEF}, newMessage(nil))
	if err != nil {
		return nil, err
	}
	d, err := newDigest(challenge.Bytes("payload"), login, least)
	if err != nil {
		return nil, err
	}
	answer := newMessage(d.response())
	if d.level == Encrypted {
		answer.Append("cipherOption").SetEnum("suite", "AES_CTR_NOPADDING")
	}
	proof, err := exchange(conn, r, nil, answer)
	if err != nil {
		return nil, err
	}
	if want := "rspauth=" + d.digest(""); string(proof.Bytes("payload")) != want {
		return nil, errors.New("the DataNode does not know the secret of the block's token")
	}
	if d.level == Authenticated {
		return Unprotected(r), nil
	}
	in, out, err := d.layers()
	if err != nil {
		return nil, err
	}
	if suites := proof.List("cipherOption"); len(suites) > 0 {
		return aesConn(r, in, suites[0])
	}
	return &Conn{R: &reader{r: r, layer: in}, Seal: out.seal}, nil
}

func newMessage(payload []byte) wire.Message {
	m := wire.New("DataTransferEncryptorMessageProto").SetEnum("status", "SUCCESS")
	if payload != nil {
		m.Set("payload", payload)
	}
	return m
}

// exchange sends before and a message, and returns the DataNode's next message.
func exchange(conn net.Conn, r *bufio.Reader, before []byte, m wire.Message) (wire.Message, error) {
	data, err := wire.AppendDelimited(before, m)
	if err != nil {
		return wire.Message{}, err
	}
	if _, err := conn.Write(data); err != nil {
		return wire.Message{}, err
	}
	return readMessage(r)
}

func readMessage(r *bufio.Reader) (wire.Message, error) {
	m := wire.New("DataTransferEncryptorMessageProto")
	if err := wire.ReadDelimited(r, m); err != nil {
		return m, err
	}
	switch m.Enum("status") {
	case "SUCCESS":
		return m, nil
	case "ERROR_UNKNOWN_KEY":
		return m, fmt.Errorf("%w: %s", ErrUnknownKey, m.Text("message"))
	}
	return m, fmt.Errorf("the DataNode refused the SASL handshake: %s", m.Text("message"))
}

// digest is the state of a DIGEST-MD5 handshake.
type digest struct {
	Login
	realm, nonce, cnonce string
	level                Level
	cipher               string
}

var pair = regexp.MustCompile(`([a-zA-Z0-9]+)=("([^"]*)"|[^,]*)`)

// newDigest reads the challenge and chooses among the levels and ciphers that it offers.
func newDigest(challenge []byte, login Login, least Level) (*digest, error) {
	said := map[string]string{}
	for _, m := range pair.FindAllSubmatch(challenge, -1) {
		said[string(m[1])] = strings.Trim(string(m[2]), `"`)
	}
	d := &digest{Login: login, realm: said["realm"], nonce: said["nonce"]}
	for offered := range strings.SplitSeq(said["qop"], ",") { // the first one of the DataNode's list that is strong enough
		if level := Level(strings.TrimSpace(offered)); d.level == "" && slices.Index(levels, level) >= slices.Index(levels, least) {
			d.level = level
		}
	}
	if d.level == "" {
		return nil, fmt.Errorf("%w: the DataNode offers only %s", ErrProtection, said["qop"])
	}
	if ciphers := strings.Split(said["cipher"], ","); d.level == Encrypted {
		for _, c := range []string{"rc4", "rc4-56", "rc4-40"} {
			if d.cipher == "" && slices.Contains(ciphers, c) {
				d.cipher = c
			}
		}
		if d.cipher == "" {
			return nil, fmt.Errorf("%w: none of the DataNode's ciphers, %q, is supported", ErrProtection, said["cipher"])
		}
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
		d.User, d.realm, d.nonce, digestCount, d.cnonce, digestURI, d.digest("AUTHENTICATE"), d.level)
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
	return sum(sum(d.User, ":", d.realm, ":", d.Password), ":", d.nonce, ":", d.cnonce)
}

// digest returns a proof that its maker knows the password. method is AUTHENTICATE for the client
// and empty for the server.
func (d *digest) digest(method string) string {
	a2 := method + ":" + digestURI
	if d.level != Authenticated {
		a2 += ":00000000000000000000000000000000"
	}
	h := func(s string) string { return hex.EncodeToString([]byte(s)) }
	return h(sum(h(d.a1()), ":", d.nonce, ":", digestCount, ":", d.cnonce, ":", string(d.level), ":", h(sum(a2))))
}
