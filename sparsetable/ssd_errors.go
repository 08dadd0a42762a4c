package sparsetable

import (
	"errors"
	"fmt"
	"strings"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/spool"
)

// fullDisk wraps an error of the system about a full file system as ErrNoSpace,
// with the directory and the space that is left there. It returns other errors as
// they are, and also those of a catalog that failed half-way, because what was
// asked of that may have happened.
func fullDisk(err error, d blockio.Device) error {
	if !blockio.IsFull(err) || errors.Is(err, bucketfile.ErrNoSpace) || errors.Is(err, ErrNoSpace) || errors.Is(err, catalog.ErrFailed) {
		return err
	}
	return fmt.Errorf("%w in %s: %w", ErrNoSpace, blockio.Left(d), err)
}

// tableError wraps errors of the internal packages in the types that this package
// documents.
func tableError(err error) error {
	var bucket *bucketfile.CorruptionError
	var cat *catalog.CorruptionError
	var delta *deltafile.CorruptionError
	var spooled *spool.CorruptionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*CorruptionError)):
		return err
	case errors.As(err, &bucket):
		return &CorruptionError{
			File: bucket.File, Offset: bucket.Offset, Reason: bucket.Reason,
			Bucket: bucket.Bucket, Slot: bucket.Slot,
		}
	case errors.As(err, &delta):
		return &CorruptionError{File: delta.File, Offset: delta.Offset, Reason: delta.Reason}
	case errors.As(err, &spooled):
		return &CorruptionError{File: spooled.File, Offset: spooled.Offset, Reason: spooled.Reason}
	case errors.As(err, &cat):
		reason := strings.ReplaceAll(cat.Err.Error(), "\n", "; ")
		if cat.What != "" {
			reason = "in " + cat.What + ": " + reason
		}
		return &CorruptionError{File: cat.Dir, Offset: -1, Reason: reason}
	case errors.Is(err, ErrNoSpace), errors.Is(err, ErrFailed):
		return err
	case errors.Is(err, bucketfile.ErrNoSpace):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, catalog.ErrFailed):
		return fmt.Errorf("%w: %w", ErrFailed, err)
	case blockio.IsFull(err):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, catalog.ErrInUse):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	case errors.Is(err, catalog.ErrNoSnapshot):
		return fmt.Errorf("%w: %w", ErrNoSnapshot, err)
	}
	return err
}
