package hadoop

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// block is one block of a file, as the NameNode described it.
type block struct {
	name          string // blk_<id>_<generation>, as in the logs of HDFS
	start, length int64  // in the file
	replicas      []replica
	wanted        int                // replicas that the file should have
	zone          *zoneInfo          // of the file; nil: it is in no encryption zone
	key           *dataKey           // encrypts the transfer from and to DataNodes; nil: it is not encrypted
	located       wire.Message       // the NameNode's LocatedBlockProto
	identity      protoreflect.Value // its ExtendedBlockProto
	code          *coding            // of a group of an erasure-coded file; nil: it is one block
	units         []*block           // the internal blocks of the group
}

// replica is one copy of a block.
type replica struct {
	node     string // host:port of its DataNode
	transfer string // the same with the IP address, which DataNodes use among themselves
	index    int    // in the NameNode's list
}

func (b *block) end() int64 { return b.start + b.length }

// dataKey is the key that encrypts the transfer of data (dfs.encrypt.data.transfer).
// The NameNode hands it out.
type dataKey struct {
	id            int32
	pool          string
	nonce, secret []byte
}

// fileBlocks knows where the blocks of a file are. The readers of one file
// share it.
type fileBlocks struct {
	c    *Cluster
	f    fsys.File
	path string

	mu struct {
		sync.Mutex
		blocks []*block // known so far, by start
	}
	fileKey atomic.Pointer[fileKey] // nil: none is needed yet
}

// locateBytes is the number of bytes of a file for which the NameNode is asked for block locations
// at a time: eight blocks of the usual size. Their block tokens, which are valid for 10 hours by
// default, are then still valid when the last block is read.
const locateBytes = 1 << 30

// find returns the block that holds the byte at offset. It asks a NameNode if the block is not
// known or fresh is set. r is the state of the caller's retries.
func (fb *fileBlocks) find(ctx context.Context, r *retrier, offset int64, fresh bool) (*block, error) {
	if !fresh {
		if b := fb.known(offset); b != nil {
			return b, nil
		}
	}
	var found []*block
	err := fb.c.once(ctx, r, func(s *session) (err error) {
		found, err = s.locate(fb.path, fb.f, offset)
		return err
	})
	if err != nil {
		return nil, err
	}
	fb.mu.Lock()
	fb.mu.blocks = slices.DeleteFunc(fb.mu.blocks, func(old *block) bool {
		return slices.ContainsFunc(found, func(b *block) bool { return b.start < old.end() && old.start < b.end() })
	})
	fb.mu.blocks = append(fb.mu.blocks, found...)
	slices.SortFunc(fb.mu.blocks, func(a, b *block) int { return int(min(1, max(-1, a.start-b.start))) })
	fb.mu.Unlock()
	if b := fb.known(offset); b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("the NameNode knows no block of the file at byte %d", offset)
}

func (fb *fileBlocks) known(offset int64) *block {
	fb.mu.Lock()
	defer fb.mu.Unlock()
	i, found := slices.BinarySearchFunc(fb.mu.blocks, offset, func(b *block, offset int64) int {
		return int(min(1, max(-1, b.start-offset)))
	})
	if !found {
		i--
	}
	if i < 0 || offset >= fb.mu.blocks[i].end() {
		return nil
	}
	return fb.mu.blocks[i]
}

// locate asks the NameNode for the blocks of a file from offset on. Then it checks that the file is
// still the one that was listed, so the blocks are not those of a file that has replaced it.
func (s *session) locate(path string, f fsys.File, offset int64) ([]*block, error) {
	req, resp := wire.New("GetBlockLocationsRequestProto"), wire.New("GetBlockLocationsResponseProto")
	req.Set("src", path).Set("offset", uint64(offset)).Set("length", uint64(min(locateBytes, f.Size-offset)))
	if err := s.execute("getBlockLocations", req.Interface(), resp.Interface()); err != nil {
		return nil, err
	}
	info, err := s.client.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := fsys.SameFile(f, entryOf(path, info)); err != nil {
		return nil, err
	}
	if err := s.c.readable(path, info); err != nil {
		return nil, err
	}
	code, err := codingOf(info)
	if err != nil {
		return nil, err
	}
	key, err := s.c.keys.get(s.execute)
	if err != nil {
		return nil, err
	}
	var blocks []*block
	for _, located := range resp.In("locations").List("blocks") {
		b := s.c.newBlock(located, key)
		b.wanted, b.zone = replicationOf(info), zoneOf(resp.In("locations"))
		if b.code = code; code != nil {
			b.wanted, b.units = code.parity+1, s.c.units(b, code)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// newBlock returns the block that a LocatedBlockProto describes.
func (c *Cluster) newBlock(located wire.Message, key *dataKey) *block {
	id := located.In("b")
	b := &block{
		name:     fmt.Sprintf("blk_%d_%d", id.Int("blockId"), id.Int("generationStamp")),
		start:    located.Int("offset"),
		length:   id.Int("numBytes"),
		key:      key,
		located:  located,
		identity: located.Value("b"),
	}
	host := "ipAddr"
	if c.conf.base.UseDatanodeHostname {
		host = "hostName"
	}
	for i, node := range located.List("locs") {
		at := node.In("id")
		port := strconv.FormatInt(at.Int("xferPort"), 10)
		b.replicas = append(b.replicas, replica{
			node:     net.JoinHostPort(at.Text(host), port),
			transfer: net.JoinHostPort(at.Text("ipAddr"), port),
			index:    i,
		})
	}
	return b
}

// reportBadBlocks tells the NameNode that a replica is corrupt, so that the NameNode deletes it and
// has a good one copied.
func (s *session) reportBadBlocks(b *block, bad replica) error {
	only := b.partly(wire.Message{Message: b.identity.Message()}, b.located.In("blockToken"), func(i int) bool { return i == bad.index })
	req, resp := wire.New("ReportBadBlocksRequestProto"), wire.New("ReportBadBlocksResponseProto")
	req.Elements("blocks").Append(protoreflect.ValueOfMessage(only.Message))
	return s.execute("reportBadBlocks", req.Interface(), resp.Interface())
}

// header returns the header of a client's request to DataNodes about the block.
func (b *block) header(client string) wire.Message {
	base := wire.New("BaseHeaderProto").Set("block", b.identity.Interface()).Set("token", b.located.Value("blockToken").Interface())
	return wire.New("ClientOperationHeaderProto").Set("baseHeader", base).Set("clientName", client)
}

// dataKeys remembers the cluster's key for the transfer of data.
type dataKeys struct {
	mu    sync.Mutex
	key   *dataKey // nil: transfers are not encrypted
	until time.Time
}

// dataKeyLife is the longest time for which the NameNode's answer, a key or that there is none, is
// used. A DataNode that no longer knows a key says so, and the NameNode is asked again.
const dataKeyLife = time.Hour

func (k *dataKeys) get(call nameNodeCall) (*dataKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.until) {
		return k.key, nil
	}
	req, resp := wire.New("GetDataEncryptionKeyRequestProto"), wire.New("GetDataEncryptionKeyResponseProto")
	// A router (of router-based federation) does not know this call, and has no keys to give.
	if err := call("getDataEncryptionKey", req.Interface(), resp.Interface()); err != nil && !isUnsupported(err) {
		return nil, err
	}
	k.key, k.until = nil, now.Add(dataKeyLife)
	if resp.Has("dataEncryptionKey") {
		key := resp.In("dataEncryptionKey")
		// The id is unsigned in the message and signed in the handshake.
		k.key = &dataKey{id: int32(key.Int("keyId")), pool: key.Text("blockPoolId"),
			nonce: key.Bytes("nonce"), secret: key.Bytes("encryptionKey")}
		if end := time.UnixMilli(key.Int("expiryDate")); end.Before(k.until) {
			k.until = end
		}
	}
	return k.key, nil
}

func (k *dataKeys) forget() {
	k.mu.Lock()
	k.until = time.Time{}
	k.mu.Unlock()
}
