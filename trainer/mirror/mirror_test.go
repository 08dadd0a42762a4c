package mirror

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"aibox/trainer/remote"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// counted makes snapshots and knows which were uploaded and released.
type counted struct {
	mu       sync.Mutex
	uploaded []int64
	released map[int64]int
	upload   func(ctx context.Context, step int64) error
}

func (c *counted) snapshot(step int64) *Snapshot {
	return &Snapshot{
		Step: step,
		Upload: func(ctx context.Context) (*remote.Published, error) {
			if err := c.upload(ctx, step); err != nil {
				return nil, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.uploaded = append(c.uploaded, step)
			return &remote.Published{UploadedBytes: 10}, nil
		},
		Release: func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.released[step]++
			return nil
		},
	}
}

// check fails the test unless these were uploaded, and each of n snapshots was released once.
func (c *counted) check(t *testing.T, n int64, uploaded ...int64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.uploaded) != len(uploaded) {
		t.Fatalf("uploaded %v, want %v", c.uploaded, uploaded)
	}
	for i := range uploaded {
		if c.uploaded[i] != uploaded[i] {
			t.Fatalf("uploaded %v, want %v", c.uploaded, uploaded)
		}
	}
	for step := range n {
		if c.released[step] != 1 {
			t.Errorf("snapshot %d was released %d times", step, c.released[step])
		}
	}
}

// TestNewest checks that of the snapshots that are taken while another one is uploaded, only the
// newest is uploaded next.
func TestNewest(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	c := &counted{released: map[int64]int{}, upload: func(_ context.Context, step int64) error {
		if step == 0 {
			close(begun)
			<-goOn
		}
		return nil
	}}
	u := Start("a snapshot", Summary{Uploaded: 5}, quiet)
	u.Offer(c.snapshot(0))
	<-begun
	for step := range int64(4) {
		u.Offer(c.snapshot(1 + step))
	}
	close(goOn)
	if !u.Finish(t.Context()) {
		t.Error("it has not finished")
	}
	if s := u.Summary(); s.Uploaded != 7 || s.UploadedBytes != 20 || s.Step != 4 || s.Error != "" {
		t.Errorf("%+v", s)
	}
	u.Stop()
	u.Offer(c.snapshot(5))
	u.Stop()
	c.check(t, 6, 0, 4)
}

// TestFails checks that an upload that fails is reported, and that the next snapshot is uploaded
// without delay.
func TestFails(t *testing.T) {
	fault := errors.New("fault")
	c := &counted{released: map[int64]int{}, upload: func(_ context.Context, step int64) error {
		if step == 0 {
			return fault
		}
		return nil
	}}
	u := Start("a snapshot", Summary{}, quiet)
	u.Offer(c.snapshot(0))
	if u.Finish(t.Context()) {
		t.Error("it has finished")
	}
	if s := u.Summary(); s.Failed == 0 || s.Error != "fault" {
		t.Errorf("%+v", s)
	}
	u.Offer(c.snapshot(1))
	if !u.Finish(t.Context()) {
		t.Error("it has not finished")
	}
	if s := u.Summary(); s.Failed == 0 || s.Error != "" || s.Step != 1 {
		t.Errorf("%+v", s)
	}
	u.Stop()
	c.check(t, 2, 1)
}

// TestStop checks that an upload in progress is ended, that nothing waits for one that fails, and
// that everything is released.
func TestStop(t *testing.T) {
	begun := make(chan struct{})
	c := &counted{released: map[int64]int{}, upload: func(ctx context.Context, step int64) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	u := Start("a snapshot", Summary{}, quiet)
	u.Offer(c.snapshot(0))
	<-begun
	u.Offer(c.snapshot(1))
	u.Stop()
	if s := u.Summary(); s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	c.check(t, 2)
}
