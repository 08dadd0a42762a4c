package source

import (
	"context"
	"errors"
	"fmt"
)

// Listing is the list of the files that URIs stood for at one time, with their sizes
// and modification times. A job that reads the same input several times lists it once,
// so that files which arrive meanwhile are part of none of the readings; a file that
// changes is an error (see OpenRange). A Listing can be written as JSON and read back.
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

// Unchanged fails if a file is no longer as it was listed: with ErrChanged, or with
// ErrNotFound if it does not exist any more.
func (s *Sources) Unchanged(ctx context.Context, f File) error {
	fs, path, err := s.resolve(f.URI)
	if err != nil {
		return err
	}
	now, err := fs.stat(ctx, path)
	if err != nil {
		return vanished(f, err)
	}
	return sameFile(f, now)
}

// vanished adds to the error about a listed file that is not found that it existed when
// it was listed.
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
