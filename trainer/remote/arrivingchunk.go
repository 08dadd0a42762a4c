package remote

import (
	"context"
	"errors"
	"io"

	"aibox/internal/directfile"
)

// chunkOrAgain fetches one chunk, and again if its object is missing or has the wrong size: the
// fault may have been on the way and not at the source.
func (a *Arriving) chunkOrAgain(f *arrivingFile, p *arrivingPart, i int) error {
	return a.d.attempts(f.Name, func() error { return a.chunk(f, p, i) }, func() {
		a.mu.Lock()
		a.stats.Again++
		a.mu.Unlock()
	})
}

// chunk fetches one chunk.
func (a *Arriving) chunk(f *arrivingFile, p *arrivingPart, i int) error {
	s := partStream{d: a.d, ctx: a.work.ctx, p: p.Part}
	buf := directfile.Memory(int(p.chunk(i)))
	err := s.read(int64(i)*chunkBytes, buf)
	if err == nil {
		err = f.write(buf, p.offset+int64(i)*chunkBytes)
	}
	return errors.Join(err, s.close())
}

// partStream reads an object at ascending offsets.
type partStream struct {
	d   *Directory
	ctx context.Context
	p   *Part
	r   io.ReadCloser
	at  int64
}

// read fills buf with the bytes at offset.
func (s *partStream) read(offset int64, buf []byte) error {
	if s.r != nil && s.at != offset {
		if err := s.close(); err != nil {
			return err
		}
	}
	if s.r == nil {
		var err error
		if s.r, err = s.d.openObject(s.ctx, s.p, offset); err != nil {
			return err
		}
	}
	n, err := io.ReadFull(&limitedReader{s.ctx, s.d.limit, s.r}, buf)
	s.at = offset + int64(n)
	if err != nil {
		return s.d.damage(s.ctx, s.p, err)
	}
	return nil
}

func (s *partStream) close() error {
	if s.r == nil {
		return nil
	}
	err := s.r.Close()
	s.r = nil
	return err
}
