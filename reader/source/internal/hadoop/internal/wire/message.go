package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	_ "github.com/colinmarc/hdfs/v2" // registers the messages
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// ErrLibraryChanged means that the client library lacks what is looked for in it.
var ErrLibraryChanged = errors.New("the HDFS client library is not the version that this program was written for")

// Message is a protocol message of HDFS whose fields are accessed by name.
type Message struct{ protoreflect.Message }

// Find makes a message of HDFS or of Hadoop's RPC, or fails with ErrLibraryChanged.
func Find(name string) (Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop.hdfs." + name))
	if err != nil {
		t, err = protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop.common." + name))
	}
	if err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrLibraryChanged, err)
	}
	return Message{t.New()}, nil
}

// New is Find, but panics if the library does not have the message. A test of package hadoop makes
// each message that is used.
func New(name string) Message {
	m, err := Find(name)
	if err != nil {
		panic(err)
	}
	return m
}

func (m Message) field(name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

// Value returns the value of a field.
func (m Message) Value(name string) protoreflect.Value { return m.Get(m.field(name)) }

// Has reports whether a field is set.
func (m Message) Has(name string) bool { return m.Message.Has(m.field(name)) }

// Text, Bytes and Int return the values of fields of these kinds; Int is for unsigned integers.
func (m Message) Text(name string) string  { return m.Value(name).String() }
func (m Message) Bytes(name string) []byte { return m.Value(name).Bytes() }
func (m Message) Int(name string) int64    { return int64(m.Value(name).Uint()) }

// In returns the message in a field, which is empty if the field is not set.
func (m Message) In(name string) Message { return Message{m.Value(name).Message()} }

// Make returns the message in a field, and sets the field if it is not set.
func (m Message) Make(name string) Message { return Message{m.Mutable(m.field(name)).Message()} }

// Enum returns the name of a field's value, or its number if it has no name.
func (m Message) Enum(name string) string { return m.EnumName(name, m.Value(name).Enum()) }

// EnumName is Enum for a number that the field, or an element of it, may have.
func (m Message) EnumName(name string, number protoreflect.EnumNumber) string {
	if v := m.field(name).Enum().Values().ByNumber(number); v != nil {
		return string(v.Name())
	}
	return strconv.Itoa(int(number))
}

// List returns the messages of a repeated field.
func (m Message) List(name string) []Message {
	l := m.Value(name).List()
	all := make([]Message, l.Len())
	for i := range all {
		all[i] = Message{l.Get(i).Message()}
	}
	return all
}

// Elements returns the values of a repeated field, to which values can be appended.
func (m Message) Elements(name string) protoreflect.List { return m.Mutable(m.field(name)).List() }

// Append appends an empty message to a repeated field.
func (m Message) Append(name string) Message {
	return Message{m.Elements(name).AppendMutable().Message()}
}

// Set changes a field; v is a Go value of the field's type, or a message.
func (m Message) Set(name string, v any) Message {
	if sub, ok := v.(Message); ok {
		v = sub.Message
	}
	m.Message.Set(m.field(name), protoreflect.ValueOf(v))
	return m
}

// SetEnum sets a field to a value by its name.
func (m Message) SetEnum(name, value string) Message {
	return m.Set(name, m.field(name).Enum().Values().ByName(protoreflect.Name(value)).Number())
}

// AppendDelimited appends a message with its length before it.
func AppendDelimited(b []byte, m Message) ([]byte, error) {
	body, err := proto.Marshal(m.Interface())
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(b, uint64(len(body))), body...), nil
}

// maxMessageBytes bounds how much is allocated for a length that a DataNode sends.
const maxMessageBytes = 1 << 20

// ReadDelimited reads a message that is preceded by its length.
func ReadDelimited(r *bufio.Reader, m Message) error {
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
