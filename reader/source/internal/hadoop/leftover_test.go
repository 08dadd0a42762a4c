package hadoop

import (
	"path"
	"slices"
	"testing"
	"time"

	"aibox/reader/source/internal/hadoop/internal/wire"
)

// TestLeftoverClock checks that the age of a temporary file is measured by the NameNode's clock alone:
// this machine's may be ahead or behind, and would then make another process's file look old or young.
func TestLeftoverClock(t *testing.T) {
	const young, old = ".f.0123456789ab.aibox.tmp", ".f.0123456789ac.aibox.tmp"
	for _, behind := range []time.Duration{time.Hour, 0, -time.Hour} {
		now := time.Now().Add(-behind)
		var removed []string
		c, _ := testCluster(t, Options{RetryMs: NoRetry})
		c.nameNodes.init([]string{startFakeNameNode(t, func(method string, req, resp wire.Message) string {
			switch method {
			case "getFileInfo":
				if src := req.Text("src"); src == "/d" {
					setStatus(resp.Make("fs"), "IS_DIR", "", 0, now)
				} else if src != "/d/f" { // which is to be written
					setStatus(resp.Make("fs"), "IS_FILE", "", 0, now)
				}
			case "mkdirs", "complete":
				resp.Set("result", true)
			case "delete":
				resp.Set("result", true)
				removed = append(removed, path.Base(req.Text("src")))
			case "getListing":
				list := resp.Make("dirList").Set("remainingEntries", uint32(0))
				setStatus(list.Append("partialListing"), "IS_FILE", young, 1, now.Add(-leftoverAge/2))
				setStatus(list.Append("partialListing"), "IS_FILE", old, 1, now.Add(-2*leftoverAge))
			case "getBlockLocations":
				resp.Make("locations").Set("fileLength", uint64(1)).Set("underConstruction", false).Set("isLastBlockComplete", true)
			}
			return ""
		})})
		t.Cleanup(c.Close)
		if _, err := c.newWriter(t.Context(), "/d/f"); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(removed, young) || !slices.Contains(removed, old) {
			t.Errorf("the NameNode's clock is %v behind: removed %q", behind, removed)
		}
	}
}
