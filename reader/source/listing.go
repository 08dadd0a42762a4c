package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"aibox/internal/humanize"
	"aibox/reader/source/internal/fsys"
)

// Listing is a list of the files that URIs stood for at one time, with their sizes and modification
// times. A job that reads the same input several times lists it once, so that no reading includes
// files that arrive later; a file that changes is an error (see OpenRange). A Listing can be
// written as JSON and read back.
type Listing struct {
	URIs  []string `json:"uris"`
	Files []File   `json:"files"`
}

// List does what Expand does and returns the result as a Listing.
func (s *Sources) List(ctx context.Context, uris []string) (*Listing, error) {
	files, err := s.Expand(ctx, uris)
	if err != nil {
		return nil, err
	}
	return &Listing{URIs: uris, Files: files}, nil
}

// Bytes is the size of all files, as stored.
func (l *Listing) Bytes() (n int64) {
	for _, f := range l.Files {
		n += f.Size
	}
	return n
}

// WithoutBytes returns a warning about compressed files of 0 bytes, or "" if there are none; data
// names the input. They count as empty, like other empty files, but no compressor writes such a
// file.
func (l *Listing) WithoutBytes(data string) string {
	if l == nil {
		return ""
	}
	var without []string
	for _, f := range l.Files {
		if f.Size == 0 && f.Compression != NoCompression {
			without = append(without, f.URI)
		}
	}
	if len(without) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has %s of 0 bytes, such as %s, which count as empty; but even empty text has some bytes when it is compressed: were these files written and copied completely?",
		data, humanize.Count(int64(len(without)), "compressed file"), without[0])
}

// Unchanged fails if a file is no longer as it was listed: with ErrChanged, or with
// ErrNotFound if it does not exist any more.
func (s *Sources) Unchanged(ctx context.Context, f File) error {
	fs, path, err := s.resolve(f.URI)
	if err != nil {
		return err
	}
	now, err := fs.Stat(ctx, path)
	if err != nil {
		return vanished(f, err)
	}
	return fsys.SameFile(f.asListed(), now)
}

// SameFiles fails if two lists of files differ: in a file, in its size or modification time, or in
// the order. The error names the first difference. Modification times are compared only if both
// lists have them.
func SameFiles(before, now []File) error {
	both := min(len(before), len(now))
	for i := range both {
		if listedName(before[i]) != listedName(now[i]) {
			return differs(before[i:], now[i:])
		}
		if err := unchangedFile(before[i], now[i]); err != nil {
			return err
		}
	}
	if len(before) != len(now) {
		return differs(before[both:], now[both:])
	}
	return nil
}

// differs describes the difference between two lists that differ in their first file, or of
// which one is empty.
func differs(before, now []File) error {
	has := func(list []File, f File) bool {
		return slices.ContainsFunc(list, func(g File) bool { return listedName(g) == listedName(f) })
	}
	switch {
	case len(before) > 0 && !has(now, before[0]):
		return fmt.Errorf("%s was removed", before[0].URI)
	case len(now) > 0 && !has(before, now[0]):
		return fmt.Errorf("%s was added", now[0].URI)
	default: // each has the other's first file
		return fmt.Errorf("%s now comes before %s", now[0].URI, before[0].URI)
	}
}

// unchangedFile compares two listings of one file.
func unchangedFile(before, now File) error {
	switch {
	case before.Size != now.Size:
		return fmt.Errorf("%s had %d bytes and now has %d", now.URI, before.Size, now.Size)
	case before.Compression != now.Compression:
		return fmt.Errorf("%s had the compression %v and now has %v", now.URI, before.Compression, now.Compression)
	case !before.ModTime.IsZero() && !now.ModTime.IsZero() && !before.ModTime.Equal(now.ModTime):
		return fmt.Errorf("%s had the modification time %s and now has %s",
			now.URI, before.ModTime.Format(fsys.TimeFormat), now.ModTime.Format(fsys.TimeFormat))
	}
	return nil
}

// listedName is a file's URI as JSON encodes it, with invalid UTF-8 replaced: one of the lists may
// come from JSON.
func listedName(f File) string { return string([]rune(f.URI)) }

// vanished adds to a not-found error about a listed file that the file existed when it was listed.
func vanished(f File, err error) error {
	var e *Error
	if f.ModTime.IsZero() || !errors.As(err, &e) || !errors.Is(e.Kind, ErrNotFound) {
		return err
	}
	gone := *e
	gone.Hint = fmt.Sprintf("it existed, with %d bytes, when the input was listed; do not remove a job's input while it runs", f.Size)
	return &gone
}

// MarshalText is String.
func (c Compression) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseCompression.
func (c *Compression) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCompression(string(text))
	return err
}
