package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/reader/rowschema"
	"aibox/reader/source"
)

// gzFiles writes the rows as n files of gzip, of different sizes.
func gzFiles(t testing.TB, n int, data []byte) (paths []string) {
	t.Helper()
	dir, lines := t.TempDir(), bytes.SplitAfter(data, []byte("\n"))
	from := 0
	for i := range n {
		// Sizes go up and down; some files have but one row.
		to := min(from+1+(i*7)%11*len(lines)/(5*n), len(lines))
		if i == n-1 {
			to = len(lines)
		}
		paths = append(paths, write(t, dir, fmt.Sprintf("part-%03d.gz", i), packed(t, source.Gzip, bytes.Join(lines[from:to], nil))))
		from = to
	}
	return paths
}

// eventually waits until done says so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

func TestManyFilesComeOutInOrder(t *testing.T) {
	data := criteoLines(600)
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := 5; i < len(lines); i += 41 {
		lines[i] = []byte("1\tbad\n")
	}
	paths := gzFiles(t, 30, bytes.Join(lines, nil))
	// An uncompressed file and one cut short stand among them.
	plain := write(t, t.TempDir(), "plain", criteoLines(20))
	broken, err := os.ReadFile(paths[12])
	if err != nil {
		t.Fatal(err)
	}
	paths[12] = write(t, t.TempDir(), "broken.gz", broken[:len(broken)*2/3])
	paths = append(paths[:20:20], append([]string{plain}, paths[20:]...)...)
	var want string
	for _, threads := range []int{1, 2, 3, 12} {
		for _, ahead := range []int{1, 16} {
			for _, chunk := range []int64{900, 1 << 20} {
				o := testOptions(rowschema.CriteoSchema(), paths...)
				o.Threads, o.AheadChunks, o.ChunkBytes, o.ShuffleBuffer = threads, ahead, chunk, 50
				var bad bytes.Buffer
				o.Quarantine, o.QuarantineRows = &bad, 100
				passes, counts := mustRead(t, o)
				got := dump(passes) + fmt.Sprintf("%+v", counts) + bad.String()
				if want == "" {
					want = got
				}
				if got != want {
					t.Fatalf("threads %d, %d chunks of %d ahead: something else is read", threads, ahead, chunk)
				}
				if len(counts.Lost) != 1 || counts.Lost[0].URI != paths[12] {
					t.Fatalf("%+v", counts)
				}
				if counts.BytesRead != counts.BytesTotal {
					t.Fatalf("%+v", counts)
				}
			}
		}
	}
}

// TestFaultOfALaterFileWaits lets a file vanish that is opened long before its
// turn: all rows before it are read first, by any number of threads.
func TestFaultOfALaterFileWaits(t *testing.T) {
	paths := gzFiles(t, 8, criteoLines(400))
	_, before := mustRead(t, testOptions(rowschema.CriteoSchema(), paths[:5]...))
	content, err := os.ReadFile(paths[5])
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 2, 8} {
		for range 5 {
			write(t, filepath.Dir(paths[5]), filepath.Base(paths[5]), content)
			o := testOptions(rowschema.CriteoSchema(), paths...)
			o.Threads, o.ChunkBytes, o.BatchSize, o.BatchesPerPass = threads, 2000, 1, 1
			// The file vanishes after it was listed; a planner begins at once.
			o, err := o.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile(&o)
			if err != nil {
				t.Fatal(err)
			}
			files, _, err := openFiles(t.Context(), &o, p)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(paths[5]); err != nil {
				t.Fatal(err)
			}
			s := newStream(t.Context(), &o, p, files)
			var rows int64
			for err == nil {
				var b *block
				if b, err = s.next(t.Context()); err == nil {
					rows += int64(b.N)
					s.release(b)
				}
			}
			if !errors.Is(err, source.ErrNotFound) || !strings.Contains(err.Error(), paths[5]) {
				t.Errorf("%d threads: %v", threads, err)
			}
			if rows != before.Examples {
				t.Errorf("%d threads: the fault came after %d rows, want %d", threads, rows, before.Examples)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDecompressorsStop ends readings while several files are decompressed and
// wait for room.
func TestDecompressorsStop(t *testing.T) {
	paths := gzFiles(t, 9, criteoLines(900))
	before := runtime.NumGoroutine()
	for passes := range 8 {
		for _, cancelled := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			o := testOptions(rowschema.CriteoSchema(), paths...)
			o.Threads, o.AheadChunks, o.ChunkBytes, o.BatchSize = 4, 1, 1500, 10
			r, err := Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			for range passes {
				if _, err := r.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if passes == 0 {
				eventually(t, "four decompressors", func() bool { return decompressing() == 4 })
			}
			if cancelled {
				cancel()
				for err == nil {
					_, err = r.Next(t.Context())
				}
				if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
					t.Errorf("after cancelling: %v", err)
				}
			}
			mustClose(t, r)
			cancel()
		}
	}
	eventually(t, "the end of all goroutines", func() bool { return decompressing() == 0 && runtime.NumGoroutine() <= before })
}

// decompressing counts the goroutines that decompress a file.
func decompressing() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte(".(*decompressor).decompress("))
}

// TestDecompressionAheadIsBounded opens long files and takes nothing. The text is
// empty lines, so that the heap holds chunks of text and little else.
func TestDecompressionAheadIsBounded(t *testing.T) {
	const files, fileChunks, chunk = 6, 40, 1 << 20
	data := packed(t, source.Gzip, bytes.Repeat([]byte("\n"), fileChunks*chunk))
	dir := t.TempDir()
	var paths []string
	for i := range files {
		paths = append(paths, write(t, dir, fmt.Sprintf("%d.gz", i), data))
	}
	for _, threads := range []int{1, 2, 5} {
		o := testOptions(adSchema(), paths...)
		o.Threads, o.AheadChunks, o.ChunkBytes = threads, 3, chunk
		heapBytes() // what pools hold goes with the second collection
		before := heapBytes()
		r, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		chunks := func() int { return int((heapBytes() - before + chunk/2) / chunk) }
		// Each decompressor has 3 chunks ready, one waiting and one begun.
		eventually(t, fmt.Sprintf("%d decompressors full of text", threads), func() bool { return chunks() >= threads*(3+2) })
		time.Sleep(20 * time.Millisecond) // more than the bound would come now
		// A decompressor itself takes less than half a chunk.
		if got, most := chunks(), threads*(3+2)+2*threads+2+threads/2; got > most {
			t.Errorf("%d threads hold %d chunks, at most %d may be", threads, got, most)
		}
		mustClose(t, r)
	}
}

// heapBytes is what the heap holds after a collection.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestParquetFilesDecodeTogether checks that the row groups of several files are
// in the workers' queue at the same time.
func TestParquetFilesDecodeTogether(t *testing.T) {
	schema, dir := mixedSchema(FormatParquet), t.TempDir()
	var paths []string
	var want []string
	for i := range 4 {
		path := filepath.Join(dir, fmt.Sprintf("%d.parquet", i))
		o := testOptions(schema, path)
		o.BatchSize = 1 // weights are left out of a mini-batch where all are 1
		writeRows(t, &o, path, schema, mixedRows(100+i))
		passes, _ := mustRead(t, o)
		want = append(want, described(passes)...)
		paths = append(paths, path)
	}
	for _, threads := range []int{1, 2, 4} {
		o := testOptions(schema, paths...)
		o.Threads, o.BatchSize = threads, 1
		r, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s := r.rows.stream
		eventually(t, "one row group per file", func() bool { return len(s.order) >= min(2*threads, len(paths)) })
		mustClose(t, r)
		passes, _ := mustRead(t, o)
		if got := described(passes); !slices.Equal(got, want) {
			t.Fatalf("%d threads: the files together have other examples than each alone", threads)
		}
	}
}
