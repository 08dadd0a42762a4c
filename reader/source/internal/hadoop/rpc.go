package hadoop

import (
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// The library does not say whether a file is open for writing, and reads only its
// completed blocks (often 0 bytes) without an error. The NameNode tells it in its answer
// to getBlockLocations, so this file makes that call over the library's connection: the
// method is found by reflection, and the messages in the protobuf registry, where the
// library's generated code registers them. TestRPCReflection fails if an update of the
// library changes any of these.

// blockState is what getBlockLocations reports in addition to the blocks.
type blockState struct {
	underConstruction bool
	length            int64 // of the file, including a last block in progress
	zone              *zoneInfo
}

// blockState asks for the block locations of a path. The NameNode checks read
// permission, so an unreadable file is found here and not at the first read.
func (s *session) blockState(path string) (blockState, error) {
	req, resp := wire.New("GetBlockLocationsRequestProto"), wire.New("GetBlockLocationsResponseProto")
	req.Set("src", path).Set("offset", uint64(0)).Set("length", uint64(1)) // one block's locations are enough
	if err := s.execute("getBlockLocations", req.Interface(), resp.Interface()); err != nil {
		return blockState{}, err
	}
	locations := resp.In("locations")
	st := blockState{underConstruction: locations.Value("underConstruction").Bool(), length: locations.Int("fileLength"), zone: zoneOf(locations)}
	if last := locations.In("lastBlock"); st.underConstruction && last.IsValid() {
		st.length = max(st.length, last.Int("offset")+last.In("b").Int("numBytes"))
	}
	return st, nil
}

// nameNodeCall calls a method of a NameNode.
type nameNodeCall func(method string, req, resp proto.Message) error

// execute is the nameNodeCall of the session's NameNode.
func (s *session) execute(method string, req, resp proto.Message) error {
	// client.namenode.Execute(method, req, resp)
	field := reflect.ValueOf(s.client).Elem().FieldByName("namenode")
	if !field.IsValid() {
		return fmt.Errorf("%w: no namenode", wire.ErrLibraryChanged)
	}
	namenode := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
	e, ok := namenode.Interface().(interface {
		Execute(method string, req proto.Message, resp proto.Message) error
	})
	if !ok {
		return fmt.Errorf("%w: no Execute", wire.ErrLibraryChanged)
	}
	return e.Execute(method, req, resp)
}
