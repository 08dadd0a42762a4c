package hadoop

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// fakeBlocks is a NameNode that has a block written to one of its DataNodes, which are addresses.
type fakeBlocks struct {
	nodes []string
	given []string // to whom a block was to be written
}

func (f *fakeBlocks) call(method string, req, resp proto.Message) error {
	if method != "addBlock" {
		return nil
	}
	var excluded []string
	for _, node := range (wire.Message{Message: req.ProtoReflect()}).List("excludeNodes") {
		excluded = append(excluded, net.JoinHostPort(node.In("id").Text("ipAddr"), strconv.FormatInt(node.In("id").Int("xferPort"), 10)))
	}
	i := slices.IndexFunc(f.nodes, func(node string) bool { return !slices.Contains(excluded, node) })
	if i < 0 {
		return errors.New("all DataNodes are excluded")
	}
	f.given = append(f.given, f.nodes[i])
	host, port, _ := net.SplitHostPort(f.nodes[i])
	n, _ := strconv.Atoi(port)
	located := wire.Message{Message: resp.ProtoReflect()}.Make("block")
	located.Make("b").Set("poolId", "BP-1").Set("blockId", uint64(len(f.given))).Set("generationStamp", uint64(1))
	located.Make("blockToken").Set("identifier", []byte{}).Set("password", []byte{}).Set("kind", "").Set("service", "")
	located.Append("locs").Make("id").Set("ipAddr", host).Set("hostName", host).Set("datanodeUuid", f.nodes[i]).Set("xferPort", uint32(n)).Set("infoPort", uint32(0)).Set("ipcPort", uint32(0))
	return nil
}

// TestUploadAfterManyFailures checks that if more DataNodes have failed lately than are tried for a
// block, for example because the network has failed, they are tried all the same. A block that no
// DataNode accepts is an error, and is not left out of the file.
func TestUploadAfterManyFailures(t *testing.T) {
	c, _ := testCluster(t, Options{})
	f := new(fakeBlocks)
	for range 2 * pipelineAttempts {
		f.nodes = append(f.nodes, refusing(t))
		c.nodes.recordFailure(f.nodes[len(f.nodes)-1])
	}
	data := []byte("text")
	u := &upload{c: c, ctx: t.Context(), call: f.call, holder: "aibox", temp: "/d/.f.tmp", data: bytes.NewReader(data), size: int64(len(data))}
	last, err := u.block(nil, 0, u.size)
	if !errors.Is(err, errNoPipeline) || last != nil {
		t.Errorf("%v, %v", last, err)
	}
	if len(f.given) != pipelineAttempts {
		t.Errorf("a block was to be written to %q", f.given)
	}
}

// TestUploadTokenRefused checks that a DataNode that does not accept a new token either is no
// longer used for the block.
func TestUploadTokenRefused(t *testing.T) {
	answer, err := wire.AppendDelimited(nil, wire.New("BlockOpResponseProto").SetEnum("status", "ERROR_ACCESS_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := testCluster(t, Options{})
	refuses, other := answering(t, answer), refusing(t)
	f := &fakeBlocks{nodes: []string{refuses, other}}
	data := []byte("text")
	u := &upload{c: c, ctx: t.Context(), call: f.call, holder: "aibox", temp: "/d/.f.tmp", data: bytes.NewReader(data), size: int64(len(data))}
	if _, err := u.block(nil, 0, u.size); !errors.Is(err, errNoPipeline) {
		t.Error(err)
	}
	if want := []string{refuses, refuses, other}; !slices.Equal(f.given, want) {
		t.Errorf("a block was to be written to %q, want %q", f.given, want)
	}
}
