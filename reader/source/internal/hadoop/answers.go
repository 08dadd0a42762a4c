package hadoop

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// answers inspects what a NameNode sends before the library reads it. A NameNode that refuses the
// connection itself, for example because the user may not connect, gives the reason in an answer
// that belongs to none of the calls; the library reports only that there is such an answer. And if
// something other than a NameNode listens, the library takes its first bytes for the length of an
// answer.
//
// An answer is
//
//	length of the rest, 4 bytes | RpcResponseHeaderProto, after its length | message, after its length
type answers struct {
	length []byte              // the bytes of the length that have arrived
	left   int                 // bytes of the answer that are still to come
	begin  []byte              // of the answer, maxHeaderBytes at most
	whole  func(answer []byte) // if not nil, is called with begin after each answer
}

const (
	// maxAnswerBytes is Hadoop's own limit (ipc.maximum.response.length).
	maxAnswerBytes = 128 << 20
	// maxHeaderBytes is how much of an answer is kept. A refusal is only a header, which has a
	// stack trace.
	maxHeaderBytes = 64 << 10
)

var errNoNameNode = errors.New("the server is not a NameNode")

// saw processes the next bytes. After an error, nothing that follows can be understood.
func (a *answers) saw(b []byte) error {
	for len(b) > 0 {
		if a.left == 0 {
			n := min(4-len(a.length), len(b))
			a.length, b = append(a.length, b[:n]...), b[n:]
			if len(a.length) < 4 {
				return nil
			}
			size := binary.BigEndian.Uint32(a.length)
			if size > maxAnswerBytes {
				return fmt.Errorf("%w: it says %q", errNoNameNode, a.length)
			}
			a.left, a.length, a.begin = int(size), a.length[:0], a.begin[:0]
			continue
		}
		n := min(a.left, len(b))
		a.begin = append(a.begin, b[:min(n, maxHeaderBytes-len(a.begin))]...)
		a.left, b = a.left-n, b[n:]
		if a.left == 0 {
			if err := refusal(a.begin); err != nil {
				return err
			}
			if a.whole != nil {
				a.whole(a.begin)
			}
		}
	}
	return nil
}

// refusal returns the error in an answer that belongs to no call, or nil if there is none.
func refusal(answer []byte) error {
	first, _ := split(answer)
	header := wire.New("RpcResponseHeaderProto")
	if proto.Unmarshal(first, header.Interface()) != nil || header.Enum("status") != "FATAL" {
		return nil // if it is no answer, the library says so
	}
	return &fatalAnswer{exception: header.Text("exceptionClassName"), message: header.Text("errorMsg")}
}

// fatalAnswer is a Java exception with which a NameNode refuses a connection.
type fatalAnswer struct{ exception, message string }

func (e *fatalAnswer) Error() string {
	return "the NameNode refuses the connection (" + e.exception + ")"
}
func (e *fatalAnswer) Method() string    { return "" }
func (e *fatalAnswer) Desc() string      { return "FATAL" }
func (e *fatalAnswer) Exception() string { return e.exception }
func (e *fatalAnswer) Message() string   { return e.message }
