package blockio

import (
	"io"
	"sync"

	"aibox/internal/panics"
)

// A Source supplies bytes that files of a device still lack because they are on their way from
// elsewhere. A Source that fetches them also writes them into the files. A Source for reading only
// does not write; its Again puts missing bytes into the readers' buffers. All methods may be called
// at any time.
type Source interface {
	// Lacks reports whether bytes of the file of this name may be missing.
	Lacks(name string) bool
	// Here reports whether the bytes [from, to) of the file are there, or need not be waited for.
	Here(name string, from, to int64) bool
	// Await waits for these bytes. After an error they are not there.
	Await(name string, from, to int64) error
	// Again says that buf, which was read from the file at offset, is wrong. It fetches these bytes
	// again, into buf, and reports whether they may be right now. They are not if the file lacked
	// nothing when the source was opened.
	Again(name string, buf []byte, offset int64) (bool, error)
}

// Arriving returns a device whose files may lack bytes that source supplies. A read of such bytes
// waits until they have arrived; all other reads are those of d. Files that are complete when they
// are opened are files of d.
func Arriving(d Device, source Source) Device { return &arrivingDevice{Device: d, source: source} }

type arrivingDevice struct {
	Device
	source Source
	late   sync.WaitGroup // reads that are waiting
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

// Submit implements Device. Each waiting read has a goroutine.
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

// Refetch fetches again bytes of a file that were read into buf and turned out to be wrong, and
// reports whether those in buf may be right now. They are not if the file was complete when it was
// opened.
func Refetch(f File, buf []byte, offset int64) (bool, error) {
	a, ok := f.(*arrivingFile)
	if !ok {
		return false, nil
	}
	return a.dev.source.Again(a.Name(), buf, offset)
}
