package hadoop

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// message is a protocol message of HDFS whose fields are accessed by name. Its type is
// one of the library's, found in the protobuf registry.
type message struct{ protoreflect.Message }

// emptyMessage makes a message of package hadoop.hdfs. It panics if the library does
// not have it; TestRPCReflection makes each message that is used.
func emptyMessage(name string) message {
	m, err := newMessage(protoreflect.FullName("hadoop.hdfs." + name))
	if err != nil {
		panic(err)
	}
	return message{m.ProtoReflect()}
}

func (m message) value(name string) protoreflect.Value {
	return m.Get(field(m.Message, protoreflect.Name(name)))
}

func (m message) has(name string) bool {
	return m.Has(field(m.Message, protoreflect.Name(name)))
}

func (m message) text(name string) string  { return m.value(name).String() }
func (m message) bytes(name string) []byte { return m.value(name).Bytes() }
func (m message) int(name string) int64    { return int64(m.value(name).Uint()) }
func (m message) in(name string) message   { return message{m.value(name).Message()} }

// enum is the name of a value, or its number where it has no name.
func (m message) enum(name string) string {
	number := m.value(name).Enum()
	if v := field(m.Message, protoreflect.Name(name)).Enum().Values().ByNumber(number); v != nil {
		return string(v.Name())
	}
	return strconv.Itoa(int(number))
}

// setEnum sets a field to a value by its name.
func (m message) setEnum(name, value string) message {
	return m.set(name, field(m.Message, protoreflect.Name(name)).Enum().Values().ByName(protoreflect.Name(value)).Number())
}

// list gives the messages of a repeated field.
func (m message) list(name string) []message {
	l := m.value(name).List()
	all := make([]message, l.Len())
	for i := range all {
		all[i] = message{l.Get(i).Message()}
	}
	return all
}

// set changes a field; v is a Go value of the field's type, or a message.
func (m message) set(name string, v any) message {
	if sub, ok := v.(message); ok {
		v = sub.Message
	}
	m.Set(field(m.Message, protoreflect.Name(name)), protoreflect.ValueOf(v))
	return m
}

// appendDelimited appends a message with its length before it.
func appendDelimited(b []byte, m message) ([]byte, error) {
	body, err := proto.Marshal(m.Interface())
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(b, uint64(len(body))), body...), nil
}

// maxMessageBytes bounds how much is allocated for a length that a DataNode sends.
const maxMessageBytes = 1 << 20

// readDelimited reads a message that is preceded by its length.
func readDelimited(r *bufio.Reader, m message) error {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if n > maxMessageBytes {
		return fmt.Errorf("a message of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return proto.Unmarshal(body, m.Interface())
}
