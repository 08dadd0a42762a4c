package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/reflect/protoreflect"

	"aibox/internal/panics"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// upload writes one file, block by block. If a DataNode fails, the block is abandoned
// and written again without that DataNode.
type upload struct {
	c        *Cluster
	ctx      context.Context // the session's
	call     nameNodeCall
	holder   string // the name of the client that has the file's lease
	temp     string // its path
	data     io.ReaderAt
	size     int64
	excluded []wire.Message // DatanodeInfoProto
	// useFailed says that DataNodes that failed in earlier uploads are tried. useFailedHere says that
	// those that failed in this one are tried as well, since the NameNode had no others left.
	useFailed, useFailedHere bool
}

const (
	// pipelineAttempts is the maximum number of attempts to write one block, each without
	// the DataNodes that failed before.
	pipelineAttempts = 10
	// settleTime is how long a NameNode may need to hear from the DataNodes that
	// a block is there.
	settleTime = 30 * time.Second
	// uploadRenewals is how often an upload that fails after it has written blocks gets the whole time
	// for retries again. An upload that fails every time, for example because the cluster is full, must
	// come to an end.
	uploadRenewals = 3
)

// errNoPipeline says that a block could be written to no DataNode.
var errNoPipeline = errors.New("no DataNodes accept a block of the file")

// upload makes one attempt to write a file, and also returns how many bytes DataNodes have taken.
func (s *session) upload(temp string, data io.ReaderAt, size int64, perm fs.FileMode) (written int64, err error) {
	defaults, err := s.client.ServerDefaults()
	if err != nil {
		return 0, err
	}
	zone, err := s.create(temp, defaults, perm)
	if err != nil {
		return 0, err
	}
	if zone != nil {
		key, err := s.c.fileKey(s.ctx, zone)
		if err != nil {
			return 0, err
		}
		data = &encrypted{data, key}
	}
	u := &upload{c: s.c, ctx: s.ctx, call: s.execute, holder: s.client.Name(), temp: temp, data: data, size: size}
	var last *wire.Message // the last block that was written
	for written < size {
		length := min(defaults.BlockSize, size-written)
		if last, err = u.block(last, written, length); err != nil {
			return written, err
		}
		written += length
	}
	return written, u.complete(last)
}

// create makes an empty file that is open for writing, encrypted if it is in an encryption zone. (The
// library's own create cannot do that.)
func (s *session) create(p string, defaults hdfs.ServerDefaults, perm fs.FileMode) (*zoneInfo, error) {
	const encryptionZones = 2 // the protocol's only version
	flags, err := s.createFlags(p)
	if err != nil {
		return nil, err
	}
	req, resp := wire.New("CreateRequestProto"), wire.New("CreateResponseProto")
	req.Set("src", p).Set("masked", wire.New("FsPermissionProto").Set("perm", uint32(perm))).Set("clientName", s.client.Name()).Set("createFlag", flags)
	req.Set("createParent", false).Set("replication", uint32(defaults.Replication)).Set("blockSize", uint64(defaults.BlockSize))
	req.Elements("cryptoProtocolVersion").Append(protoreflect.ValueOfEnum(encryptionZones))
	if err := s.execute("create", req.Interface(), resp.Interface()); err != nil {
		return nil, err
	}
	return zoneOf(resp.In("fs")), nil
}

// block writes the block after previous and returns its identity.
func (u *upload) block(previous *wire.Message, offset, length int64) (*wire.Message, error) {
	c := u.c
	var failed error
	renewed := false // whether the keys were
	for attempt := range pipelineAttempts {
		if attempt == pipelineAttempts/2 {
			u.useFailed = true // so many have failed lately that it may have been the network
		}
		b, err := u.addBlock(previous)
		if err != nil {
			if len(u.excluded) == 0 || u.useFailedHere || !isNameNodeAnswer(err) {
				return nil, after(failed, err)
			}
			u.excluded, u.useFailed, u.useFailedHere = nil, true, true
			continue
		}
		var bad []int // in the block's list
		for i, r := range b.replicas {
			if !u.useFailed && !c.nodes.failedAt(r.node).IsZero() {
				bad = append(bad, i)
			}
		}
		if len(bad) == 0 {
			err = c.writeBlock(u.ctx, b, u.holder, io.NewSectionReader(u.data, offset, length), length)
			if err == nil {
				for _, r := range b.replicas {
					c.nodes.clearFailure(r.node)
				}
				done := wire.Message{Message: b.identity.Message()}
				done.Set("numBytes", uint64(length))
				return &done, nil
			}
			var fault *pipelineError
			if u.ctx.Err() != nil || !errors.As(err, &fault) {
				return nil, err
			}
			failed = fmt.Errorf("%w: DataNode %s: %w", errNoPipeline, b.replicas[fault.node].node, err)
			if fault.stale && !renewed {
				c.keys.forget()
				renewed = true
			} else if bad = []int{fault.node}; isTimeout(err) {
				if silent := u.silent(b); len(silent) > 0 {
					bad = silent
				}
			}
			for _, i := range bad {
				c.nodes.recordFailure(b.replicas[i].node)
				c.log.Warn("HDFS: a DataNode failed; the block is written again without it",
					"datanode", b.replicas[i].node, "uri", c.URI(u.temp), "offset", offset, "error", err)
			}
		}
		for _, i := range bad {
			u.excluded = append(u.excluded, b.located.List("locs")[i])
		}
		if err := u.abandon(b); err != nil {
			return nil, after(failed, err)
		}
	}
	return nil, failed
}

// silent returns the DataNodes of a block that do not answer at all. The pipeline does not tell
// which one hangs, because we are connected only to the first one, which waits for the others. So
// each is asked for the block; a refusal is an answer as well.
func (u *upload) silent(b *block) []int {
	silent := make([]bool, len(b.replicas))
	var wg sync.WaitGroup
	for i, r := range b.replicas {
		wg.Go(func() {
			defer panics.Exit("asking for DataNodes that do not answer")
			stream, err := u.c.openBlock(u.ctx, b, r, 0, u.c.timeout/2, true)
			var fault *replicaError
			if silent[i] = errors.As(err, &fault) && fault.kind == unreachable; err == nil {
				stream.close()
			}
		})
	}
	wg.Wait()
	var nodes []int
	for i, s := range silent {
		if s {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// addBlock asks the NameNode for the block after previous.
func (u *upload) addBlock(previous *wire.Message) (*block, error) {
	key, err := u.c.keys.get(u.call)
	if err != nil {
		return nil, err
	}
	req, resp := wire.New("AddBlockRequestProto"), wire.New("AddBlockResponseProto")
	req.Set("src", u.temp).Set("clientName", u.holder)
	if previous != nil {
		req.Set("previous", *previous)
	}
	exclude := req.Elements("excludeNodes")
	for _, node := range u.excluded {
		exclude.Append(protoreflect.ValueOfMessage(node.Message))
	}
	err = u.patiently(func() (bool, error) {
		err := u.call("addBlock", req.Interface(), resp.Interface())
		var remote hdfs.Error
		if errors.As(err, &remote) && remote.Exception() == "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException" {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	b := u.c.newBlock(resp.In("block"), key)
	if len(b.replicas) == 0 {
		return nil, errNoPipeline
	}
	return b, nil
}

func (u *upload) abandon(b *block) error {
	req, resp := wire.New("AbandonBlockRequestProto"), wire.New("AbandonBlockResponseProto")
	req.Set("b", b.identity.Interface()).Set("src", u.temp).Set("holder", u.holder)
	return u.call("abandonBlock", req.Interface(), resp.Interface())
}

// complete closes the file, once the NameNode has heard of its last block.
func (u *upload) complete(last *wire.Message) error {
	req, resp := wire.New("CompleteRequestProto"), wire.New("CompleteResponseProto")
	req.Set("src", u.temp).Set("clientName", u.holder)
	if last != nil {
		req.Set("last", *last)
	}
	return u.patiently(func() (bool, error) {
		err := u.call("complete", req.Interface(), resp.Interface())
		return resp.Value("result").Bool(), err
	})
}

// patiently repeats a call of the NameNode until it has heard from the DataNodes.
func (u *upload) patiently(call func() (done bool, err error)) error {
	begin := time.Now()
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		if done, err := call(); done || err != nil {
			return err
		}
		if time.Since(begin) > settleTime {
			return fmt.Errorf("the DataNodes have not reported a block to the NameNode within %v", settleTime)
		}
		select {
		case <-time.After(pause):
		case <-u.ctx.Done():
			return context.Cause(u.ctx)
		}
	}
}

// after adds to err the failure that came before it, if there was one.
func after(failed, err error) error {
	if failed == nil {
		return err
	}
	return fmt.Errorf("%w; then %w", failed, err)
}

// isNameNodeAnswer reports whether err is a refusal rather than a lost connection.
func isNameNodeAnswer(err error) bool { return errors.As(err, new(hdfs.Error)) }
