package hadoop

import (
	"errors"
	"testing"
	"time"

	"aibox/reader/source/internal/fsys"
	"aibox/reader/source/internal/hadoop/internal/wire"
)

// TestReplacedWhileLocated checks that a file that is replaced between the NameNode's answers about it
// has changed. Otherwise blocks of the new file would be read as those of the old one.
func TestReplacedWhileLocated(t *testing.T) {
	listed := time.UnixMilli(1_000_000)
	for calls := 1; calls <= 2; calls++ { // so many come before the file is replaced
		answered := 0
		c, _ := testCluster(t, Options{RetryMs: NoRetry})
		c.nameNodes.init([]string{startFakeNameNode(t, func(method string, _, resp wire.Message) string {
			modified, id := listed, uint64(1)
			if answered >= calls {
				modified, id = listed.Add(time.Second), 2
			}
			switch method {
			case "getFileInfo":
				setStatus(resp.Make("fs"), "IS_FILE", "", 1000, modified)
				answered++
			case "getBlockLocations":
				locations := resp.Make("locations").Set("fileLength", uint64(1000)).Set("underConstruction", false).Set("isLastBlockComplete", true)
				b := locations.Append("blocks").Set("offset", uint64(0)).Set("corrupt", false)
				b.Make("b").Set("poolId", "BP-1").Set("blockId", id).Set("generationStamp", uint64(1)).Set("numBytes", uint64(1000))
				b.Make("blockToken").Set("identifier", []byte{}).Set("password", []byte{}).Set("kind", "").Set("service", "")
				answered++
			}
			return ""
		})})
		t.Cleanup(c.Close)
		r, err := c.OpenRange(t.Context(), "/a", fsys.File{URI: "hdfs://nn:8020/a", Size: 1000, ModTime: listed}, 0)
		if answered != 2 {
			t.Fatalf("%d calls about the file", answered)
		}
		if calls == 1 && !errors.Is(err, fsys.ErrChanged) {
			t.Errorf("replaced between the calls: %v", err)
		}
		if calls == 2 && (err != nil || r.(*reader).b.name != "blk_1_1") {
			t.Errorf("not replaced: %v", err)
		}
	}
}
