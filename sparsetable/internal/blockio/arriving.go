package blockio

import (
	"io"
	"sync"

	"aibox/internal/panics"
)

// A Source has what files of a device still lack: bytes that are on their way from
// elsewhere. Who brings them writes them into the files itself; a Source that is only to read
// has no part in that, and puts what is not there yet into the buffers of readers (Again). All
// methods may be called at any time.
type Source interface {
	// Lacks reports whether bytes of the file of this name may be missing.
	Lacks(name string) bool
	// Here reports whether the bytes [from, to) of the file are there, or are not to be
	// waited for.
	Here(name string, from, to int64) bool
	// Await returns when they are there. After an error they are not.
	Await(name string, from, to int64) error
	// Again says that buf is what was read of the file from an offset on, and that it is wrong.
	// It brings these bytes once more, into buf, and reports whether they may be right now: not
	// if the file lacked nothing when the source was opened.
	Again(name string, buf []byte, offset int64) (bool, error)
}

// Arriving returns a device whose files may lack bytes that source has. A read of such bytes
// waits until they have arrived; all others are those of d. Files that are complete when
// they are opened are files of d.
func Arriving(d Device, source Source) Device { return &arrivingDevice{Device: d, source: source} }

type arrivingDevice struct {
	Device
	source Source
	late   sync.WaitGroup // reads that wait
}

// arrivingFile is a file that lacked bytes when it was opened.
type arrivingFile struct {
	File
	dev *arrivingDevice
}

// OpenFile implements Device.
func (d *arrivingDevice) OpenFile(name string) (File, error) {
	f, err := d.Device.OpenFile(name)
	if err != nil || !d.source.Lacks(name) {
		return f, err
	}
	return &arrivingFile{f, d}, nil
}

// Submit implements Device. Each read that has to wait has a goroutine.
func (d *arrivingDevice) Submit(c *Completions, reads []*Read) {
	here := 0
	for _, r := range reads {
		if f, ok := r.File.(*arrivingFile); ok && !d.source.Here(f.Name(), r.Offset, r.Offset+int64(len(r.Buf))) {
			one := []*Read{r}
			c.Begin(one)
			d.late.Go(func() {
				defer panics.Exit("waiting for bytes that have not arrived")
				var n int
				n, r.Err = f.ReadAt(r.Buf, r.Offset)
				if r.Err == io.EOF {
					r.Err = io.ErrUnexpectedEOF
				}
				r.SetDone(n)
				Deliver(one)
			})
			continue
		} else if ok {
			r.File = f.File
		}
		reads[here] = r
		here++
	}
	d.Device.Submit(c, reads[:here])
}

// Close implements Device.
func (d *arrivingDevice) Close() error {
	d.late.Wait()
	return d.Device.Close()
}

// ReadAt implements File.
func (f *arrivingFile) ReadAt(buf []byte, offset int64) (int, error) {
	if err := f.dev.source.Await(f.Name(), offset, offset+int64(len(buf))); err != nil {
		return 0, err
	}
	return f.File.ReadAt(buf, offset)
}

// IsArriving reports whether a file lacked bytes when it was opened.
func IsArriving(f File) bool {
	_, ok := f.(*arrivingFile)
	return ok
}

// Refetch has bytes of a file brought once more that were read into buf and turned out to be
// wrong, and reports whether those in buf may be right now. They are not if the file is on its
// device alone.
func Refetch(f File, buf []byte, offset int64) (bool, error) {
	a, ok := f.(*arrivingFile)
	if !ok {
		return false, nil
	}
	return a.dev.source.Again(a.Name(), buf, offset)
}
