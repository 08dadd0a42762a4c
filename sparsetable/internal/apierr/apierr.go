package apierr

import (
	"errors"
	"fmt"
	"strings"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/spool"
)

// FullDisk wraps an error of the system about a full file system as contract.ErrNoSpace, with the
// directory and its remaining space. It returns other errors unchanged, also those of a catalog
// that failed half-way, because the operation may have succeeded.
func FullDisk(err error, d blockio.Device) error {
	if !blockio.IsFull(err) || errors.Is(err, bucketfile.ErrNoSpace) || errors.Is(err, contract.ErrNoSpace) || errors.Is(err, catalog.ErrFailed) {
		return err
	}
	return fmt.Errorf("%w in %s: %w", contract.ErrNoSpace, blockio.Left(d), err)
}

// Of wraps errors of the internal packages in the types that package sparsetable documents.
func Of(err error) error {
	var bucket *bucketfile.CorruptionError
	var cat *catalog.CorruptionError
	var delta *deltafile.CorruptionError
	var spooled *spool.CorruptionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*contract.CorruptionError)):
		return err
	case errors.As(err, &bucket):
		return &contract.CorruptionError{
			File: bucket.File, Offset: bucket.Offset, Reason: bucket.Reason,
			Bucket: bucket.Bucket, Slot: bucket.Slot,
		}
	case errors.As(err, &delta):
		return &contract.CorruptionError{File: delta.File, Offset: delta.Offset, Reason: delta.Reason}
	case errors.As(err, &spooled):
		return &contract.CorruptionError{File: spooled.File, Offset: spooled.Offset, Reason: spooled.Reason}
	case errors.As(err, &cat):
		reason := strings.ReplaceAll(cat.Err.Error(), "\n", "; ")
		if cat.What != "" {
			reason = "in " + cat.What + ": " + reason
		}
		return &contract.CorruptionError{File: cat.Dir, Offset: -1, Reason: reason}
	case errors.Is(err, contract.ErrNoSpace), errors.Is(err, contract.ErrFailed):
		return err
	case errors.Is(err, bucketfile.ErrNoSpace):
		return fmt.Errorf("%w: %w", contract.ErrNoSpace, err)
	case errors.Is(err, catalog.ErrFailed):
		return fmt.Errorf("%w: %w", contract.ErrFailed, err)
	case blockio.IsFull(err):
		return fmt.Errorf("%w: %w", contract.ErrNoSpace, err)
	case errors.Is(err, catalog.ErrInUse):
		return fmt.Errorf("%w: %w", contract.ErrInUse, err)
	case errors.Is(err, catalog.ErrNoSnapshot):
		return fmt.Errorf("%w: %w", contract.ErrNoSnapshot, err)
	}
	return err
}
