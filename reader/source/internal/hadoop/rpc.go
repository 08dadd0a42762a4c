package hadoop

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// The library does not say whether a file is open for writing, and reads only its
// completed blocks (often 0 bytes) without an error. The NameNode tells it in its answer
// to getBlockLocations, so this file makes that call over the library's connection: the
// method is found by reflection, and the messages in the protobuf registry, where the
// library's generated code registers them. TestRPCReflection fails if an update of the
// library changes any of these.

// blockState is what getBlockLocations tells in addition to the blocks.
type blockState struct {
	underConstruction bool
	length            int64 // of the file, including a last block in progress
}

// blockState asks for the block locations of a path. The NameNode checks read
// permission, so an unreadable file is found here and not at the first read.
func (s *session) blockState(path string) (blockState, error) {
	req, resp := emptyMessage("GetBlockLocationsRequestProto"), emptyMessage("GetBlockLocationsResponseProto")
	req.set("src", path).set("offset", uint64(0)).set("length", uint64(1)) // one block's locations are enough
	if err := s.execute("getBlockLocations", req.Interface(), resp.Interface()); err != nil {
		return blockState{}, err
	}
	locations := resp.in("locations")
	st := blockState{underConstruction: locations.value("underConstruction").Bool(), length: locations.int("fileLength")}
	if last := locations.in("lastBlock"); st.underConstruction && last.IsValid() {
		st.length = max(st.length, last.int("offset")+last.in("b").int("numBytes"))
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
