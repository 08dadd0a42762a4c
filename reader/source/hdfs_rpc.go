package source

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The library offers no way to learn that a file is open for writing, and
// reads it as far as its completed blocks go (0 bytes, often) without an
// error. The NameNode says so in its answer to getBlockLocations, so this file
// makes that call over the library's connection: the method is found by
// reflection, the messages in the protobuf registry, where the library's
// generated code registers them. TestRPCReflection fails if an update of the
// library moves any of it.

// blockState is what getBlockLocations tells beside the blocks.
type blockState struct {
	underConstruction bool
	length            int64 // of the file, including a last block in progress
}

// blockState asks for the block locations of a path. The NameNode checks read
// permission, so an unreadable file is found here and not at the first read.
func (s *session) blockState(path string) (blockState, error) {
	req, err := newMessage("hadoop.hdfs.GetBlockLocationsRequestProto")
	if err != nil {
		return blockState{}, err
	}
	resp, err := newMessage("hadoop.hdfs.GetBlockLocationsResponseProto")
	if err != nil {
		return blockState{}, err
	}
	setField(req, "src", protoreflect.ValueOfString(path))
	setField(req, "offset", protoreflect.ValueOfUint64(0))
	setField(req, "length", protoreflect.ValueOfUint64(1)) // one block's locations are enough
	if err := s.execute("getBlockLocations", req, resp); err != nil {
		return blockState{}, err
	}
	locations := getField(resp, "locations").Message()
	st := blockState{
		underConstruction: locations.Get(field(locations, "underConstruction")).Bool(),
		length:            int64(locations.Get(field(locations, "fileLength")).Uint()),
	}
	if !st.underConstruction {
		return st, nil
	}
	if last := locations.Get(field(locations, "lastBlock")).Message(); last.IsValid() {
		b := last.Get(field(last, "b")).Message()
		start := int64(last.Get(field(last, "offset")).Uint())
		st.length = max(st.length, start+int64(b.Get(field(b, "numBytes")).Uint()))
	}
	return st, nil
}

var errLibraryChanged = errors.New("the HDFS client library is not the version that this program was written for")

// execute calls a NameNode method.
func (s *session) execute(method string, req, resp proto.Message) error {
	// client.namenode.Execute(method, req, resp)
	field := reflect.ValueOf(s.client).Elem().FieldByName("namenode")
	if !field.IsValid() {
		return fmt.Errorf("%w: no namenode", errLibraryChanged)
	}
	namenode := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	e, ok := namenode.Interface().(interface {
		Execute(method string, req proto.Message, resp proto.Message) error
	})
	if !ok {
		return fmt.Errorf("%w: no Execute", errLibraryChanged)
	}
	return e.Execute(method, req, resp)
}

func newMessage(name protoreflect.FullName) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLibraryChanged, err)
	}
	return t.New().Interface(), nil
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

func setField(m proto.Message, name protoreflect.Name, v protoreflect.Value) {
	r := m.ProtoReflect()
	r.Set(field(r, name), v)
}

func getField(m proto.Message, name protoreflect.Name) protoreflect.Value {
	r := m.ProtoReflect()
	return r.Get(field(r, name))
}
