package rowfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"aibox/internal/parquetfile"
)

// checkFooter compares the length of the footer, which is stored before the last four bytes of a
// file, with the length of the file, because the library allocates as much memory as the former
// says. A file that does not end like a Parquet file is left to the library to refuse.
func checkFooter(r io.ReaderAt, bytes int64) (io.ReaderAt, error) {
	const frame = len("PAR1") + 4 + len("PAR1")
	var end [8]byte
	if bytes < int64(frame) {
		return nil, notParquet(io.EOF)
	}
	if n, err := r.ReadAt(end[:], bytes-int64(len(end))); n < len(end) {
		return nil, notParquet(err)
	}
	footer := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) == "PAR1" && footer > bytes-int64(frame) {
		return nil, fmt.Errorf("damaged Parquet file: its footer should have %d bytes, but the file has %d", footer, bytes)
	}
	return parquetfile.WithFooter{ReaderAt: r, Footer: bytes - int64(len(end)) - footer}, nil
}
