package hadoop

import (
	"bytes"
	"encoding/binary"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// requests signs or encrypts the requests to a NameNode if hadoop.rpc.protection requires that of
// its answers. The library understands such answers, but sends its requests, file names included,
// in the clear, which a NameNode accepts.
//
// Like an answer, each request is the token of an RpcSaslProto whose state is WRAP, behind a header
// like those that the library has sent during the login. The token is a wrap token (RFC 4121,
// 4.2.6.2) with the key of the service's ticket.
type requests struct {
	key      types.EncryptionKey
	header   []byte // RpcRequestHeaderProto of the login, after its length
	levels   byte   // of protection that the NameNode offers, one bit each
	loggedIn bool
	sent     uint64 // number of tokens
}

// The bits of levels, as in SASL (RFC 4752, 3.3).
const (
	levelIntegrity = 2
	levelPrivacy   = 4
)

// saslCall is the call ID of the login's calls and of protected requests.
const saslCall = -33

// saw learns the state of the login from one of its answers.
func (r *requests) saw(answer []byte) {
	if r.loggedIn {
		return
	}
	header, rest := split(answer)
	about, msg := wire.New("RpcResponseHeaderProto"), wire.New("RpcSaslProto")
	if proto.Unmarshal(header, about.Interface()) != nil || int32(about.Int("callId")) != saslCall {
		return
	}
	if body, _ := split(rest); proto.Unmarshal(body, msg.Interface()) != nil {
		return
	}
	switch msg.Enum("state") {
	case "CHALLENGE":
		if token := msg.Bytes("token"); len(token) > gssapi.HdrLen {
			r.levels = token[gssapi.HdrLen]
		}
	case "SUCCESS":
		r.loggedIn = true
	}
}

// of returns what is sent for the bytes that the library writes, which are one request or the
// beginning of the connection.
func (r *requests) of(request []byte) ([]byte, error) {
	if r == nil || !r.loggedIn && len(request) < 4 {
		return request, nil
	}
	if !r.loggedIn {
		header, _ := split(request[4:])
		about := wire.New("RpcRequestHeaderProto")
		if proto.Unmarshal(header, about.Interface()) == nil && int32(about.Value("callId").Int()) == saslCall {
			r.header = bytes.Clone(header)
		}
		return request, nil
	}
	if r.levels&(levelIntegrity|levelPrivacy) == 0 {
		return request, nil
	}
	token, err := r.wrap(request)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, 4, 4+len(r.header)+len(token)+32)
	packet = append(binary.AppendUvarint(packet, uint64(len(r.header))), r.header...)
	if packet, err = wire.AppendDelimited(packet, wire.New("RpcSaslProto").SetEnum("state", "WRAP").Set("token", token)); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-4))
	return packet, nil
}

// wrap returns the token of a request. The login has chosen the highest level that the NameNode
// offers.
func (r *requests) wrap(request []byte) ([]byte, error) {
	number := r.sent
	r.sent++
	etype, err := crypto.GetEtype(r.key.KeyType)
	if err != nil {
		return nil, err
	}
	if r.levels&levelPrivacy == 0 {
		t := gssapi.WrapToken{EC: uint16(etype.GetHMACBitLength() / 8), SndSeqNum: number, Payload: request}
		if err := t.SetCheckSum(r.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
			return nil, err
		}
		return t.Marshal()
	}
	const sealed = 2
	header := binary.BigEndian.AppendUint64([]byte{5, 4, sealed, gssapi.FillerByte, 0, 0, 0, 0}, number)
	_, text, err := etype.EncryptMessage(r.key.KeyValue, append(request[:len(request):len(request)], header...), keyusage.GSSAPI_INITIATOR_SEAL)
	return append(header, text...), err
}

// split returns the message at the beginning of b, which follows its length, and the rest of b.
// Both are nil if the message is incomplete.
func split(b []byte) (first, rest []byte) {
	first, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, nil
	}
	return first, b[n:]
}
