package source

import (
	"context"
	"errors"
	"fmt"

	"aibox/reader/source/internal/listing"
)

// Expand lists the files that the URIs stand for, in the order given; the
// matches of one pattern or directory come in byte order of their paths. A URI
// given twice is listed twice.
//
// It fails with ErrNotFound, naming the URIs that are missing or are a pattern or directory
// without a file; and on the first one that cannot be read (ErrPermission), is still being
// written (ErrBeingWritten) or whose HDFS does not answer (ErrUnavailable).
func (s *Sources) Expand(ctx context.Context, uris []string) ([]File, error) {
	var files []File
	var missing []error
	for _, uri := range uris {
		fs, p, err := s.resolve(uri)
		if err != nil {
			return nil, err
		}
		entries, err := listing.Expand(ctx, fs, uri, p)
		if errors.Is(err, ErrNotFound) {
			missing = append(missing, err) // the others are named, too
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := fs.Check(ctx, entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, File{
				URI:         fs.URI(e.Path),
				Size:        e.Size,
				Compression: CompressionOf(e.Path),
				ModTime:     e.ModTime,
			})
		}
	}
	if len(missing) > maxMissing {
		missing = append(missing[:maxMissing], fmt.Errorf("and %d more of the %d inputs are not found", len(missing)-maxMissing, len(uris)))
	}
	if err := errors.Join(missing...); err != nil {
		return nil, err
	}
	return files, nil
}

// maxMissing is how many inputs that do not exist Expand names.
const maxMissing = 5
